import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import type { Test } from 'tap'
import type { Certificate } from './certificate.ts'
import { freePort } from './free-port.ts'

export interface TestPostgres {
  readonly port: number
  /** URL of the latest database. @param port of a proxy in front of the server */
  url(port?: number): string
  /** Creates an empty database, whose URL url() returns from now on. */
  createDatabase(): Promise<void>
  /** Queries the server directly. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  stop(): Promise<void>
  start(): Promise<void>
}

export const PASSWORD = 'pa55-w0rd/with:signs@'

const FOLDER = '/usr/lib/postgresql'

/** Why tests that need PostgreSQL cannot run; false = they can. */
export const withoutPostgres: string | false = binaries() === null ? 'needs postgresql (Debian: postgresql)' : false

/**
 * A server with an empty database; it ends with the test. Clients need a password.
 * @param tls what it shows to clients that want TLS
 */
export async function startPostgres(t: Test, tls?: Certificate): Promise<TestPostgres> {
  const bin = binaries()
  if (bin === null) throw new Error('PostgreSQL is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'gateway-postgres-'))
  const user = unprivilegedUser()
  if (user) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const write = (name: string, text: string): string => {
    const file = join(folder, name)
    writeFileSync(file, text, { mode: 0o600 })
    if (user) chownSync(file, user.uid, user.gid)
    return file
  }
  const passwordFile = write('password', PASSWORD)
  const secured = tls === undefined ? [] : [
    '-c', 'ssl=on', '-c', `ssl_cert_file=${write('cert.pem', tls.cert)}`, '-c', `ssl_key_file=${write('key.pem', tls.key)}`,
  ]
  const made = spawnSync(join(bin, 'initdb'), [
    '-D', data, '-U', 'gateway', '-A', 'scram-sha-256', '--pwfile', passwordFile, '-E', 'UTF8', '--locale', 'C', '--no-sync',
  ], { ...user, encoding: 'utf8', cwd: folder })
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)
  const port = await freePort()
  let server: ChildProcess | null = null
  let database = 'postgres'
  let databases = 0
  const url = (at = port) => `postgres://gateway:${encodeURIComponent(PASSWORD)}@127.0.0.1:${at}/${database}`
  const connected = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    const client = new Client({ connectionString: url() })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }
  const start = async (): Promise<void> => {
    server = spawn(join(bin, 'postgres'), [
      '-D', data, '-p', String(port), '-k', folder, '-c', 'listen_addresses=127.0.0.1',
      '-c', 'fsync=off', '-c', 'max_connections=50', '-c', 'shared_buffers=16MB', ...secured,
    ], { ...user, cwd: folder, stdio: 'ignore' })
    const { promise: exited, resolve } = Promise.withResolvers<boolean>()
    server.once('exit', () => resolve(true))
    for (;;) {
      const isUp = connected(client => client.query('SELECT 1')).then(() => false, () => null)
      const ended = await Promise.race([isUp, exited])
      if (ended === false) return
      if (ended) throw new Error('PostgreSQL ended at its start')
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
  const stop = async (): Promise<void> => {
    if (server === null || server.exitCode !== null || server.signalCode !== null) return
    const exited = new Promise(resolve => server?.once('exit', resolve))
    // Immediate shutdown, which does not wait for connections.
    server.kill('SIGQUIT')
    await exited
  }
  t.teardown(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  await start()
  const createDatabase = async (): Promise<void> => {
    const name = `test_${++databases}`
    await connected(client => client.query(`CREATE DATABASE ${name}`))
    database = name
  }
  await createDatabase()
  return {
    port,
    url,
    createDatabase,
    query: (sql, values = []) => connected(async client => (await client.query(sql, values)).rows as Record<string, unknown>[]),
    stop,
    start,
  }
}

/** The folder with the commands of the newest version; null = none is installed. */
function binaries(): string | null {
  try {
    const [newest] = readdirSync(FOLDER).sort((a, b) => Number(b) - Number(a))
    return newest === undefined ? null : join(FOLDER, newest, 'bin')
  } catch {
    return null
  }
}

/** PostgreSQL does not run as root. */
function unprivilegedUser(): { uid: number, gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout)
  return { uid: idOf('-u'), gid: idOf('-g') }
}
