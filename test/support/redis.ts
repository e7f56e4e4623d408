import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'

export interface TestRedis {
  readonly port: number
  /** URL of this server. @param port of a proxy in front of the server */
  url(port?: number): string
  /** Queries the server directly. */
  readonly client: Redis
  stop(): Promise<void>
  /** Starts the server again, without data. */
  start(): Promise<void>
}

const COMMAND = ['valkey-server', 'redis-server'].find(command => spawnSync(command, ['--version']).status === 0) ?? null

/** Why tests that need Valkey cannot run; false = they can. */
export const withoutRedis: string | false = COMMAND === null ? 'needs valkey-server or redis-server (Debian: redis-server)' : false

export const REDIS_PASSWORD = 's3cret/with:signs@'

/**
 * A server without data; it ends with the test. Clients need a password.
 * @param options of the command line, beside those that every server here has
 */
export async function startRedis(t: Test, options: readonly string[] = []): Promise<TestRedis> {
  const command = COMMAND
  if (command === null) throw new Error('redis-server is not installed')
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'gateway-redis-'))
  let server: ChildProcess | null = null
  const client = new Redis({ port, password: REDIS_PASSWORD, retryStrategy: () => 20 })
  client.on('error', () => undefined)
  const stop = async (): Promise<void> => {
    if (server === null || server.exitCode !== null || server.signalCode !== null) return
    const exited = once(server, 'exit')
    server.kill('SIGKILL')
    await exited
  }
  const start = async (): Promise<void> => {
    server = spawn(command, [
      '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--requirepass', REDIS_PASSWORD, '--dir', folder, ...options,
    ], { stdio: 'ignore' })
    await client.ping()
  }
  t.teardown(async () => {
    client.disconnect()
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  await start()
  return { port, url: (at = port) => `redis://:${encodeURIComponent(REDIS_PASSWORD)}@127.0.0.1:${at}/0`, client, stop, start }
}

/** Three servers of a cluster. @param options of each */
export async function startRedisCluster(t: Test, options: (n: number) => readonly string[] = () => []): Promise<TestRedis[]> {
  const servers: TestRedis[] = []
  const buses: number[] = []
  for (let n = 0; n < 3; n++) {
    const bus = await freePort()
    buses.push(bus)
    servers.push(await startRedis(t, [
      '--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-announce-ip', '127.0.0.1', '--cluster-node-timeout', '2000',
      ...options(n),
    ]))
  }
  const slots = [['0', '5460'], ['5461', '10922'], ['10923', '16383']]
  for (const [n, { client }] of servers.entries()) {
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(n + 1))
    await client.call('CLUSTER', 'ADDSLOTSRANGE', ...slots[n]!)
  }
  for (const n of [1, 2]) await servers[0]!.client.call('CLUSTER', 'MEET', '127.0.0.1', String(servers[n]!.port), String(buses[n]))
  for (const { client } of servers) {
    const isOk = async () => /cluster_state:ok[^]*cluster_known_nodes:3/.test(await client.call('CLUSTER', 'INFO') as string)
    while (!await isOk()) await new Promise(resolve => setTimeout(resolve, 50))
  }
  return servers
}

/** A master and its replica, with a sentinel that makes the replica the master when the master no longer answers. */
export async function startRedisWithSentinel(t: Test): Promise<{ readonly master: TestRedis, readonly replica: TestRedis, readonly sentinel: number }> {
  const command = COMMAND
  if (command === null) throw new Error('redis-server is not installed')
  const auth = ['--masterauth', REDIS_PASSWORD, '--repl-diskless-sync-delay', '0']
  const master = await startRedis(t, auth)
  const replica = await startRedis(t, [...auth, '--replicaof', `127.0.0.1 ${master.port}`])
  while (!/master_link_status:up/.test(await replica.client.info('replication'))) await new Promise(resolve => setTimeout(resolve, 50))
  const sentinel = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'gateway-sentinel-'))
  const file = join(folder, 'sentinel.conf')
  writeFileSync(file, `port ${sentinel}
bind 127.0.0.1
dir ${folder}
requirepass ${REDIS_PASSWORD}
sentinel monitor main 127.0.0.1 ${master.port} 1
sentinel auth-pass main ${REDIS_PASSWORD}
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 2000
`)
  const process = spawn(command, [file, '--sentinel'], { stdio: 'ignore' })
  t.teardown(async () => {
    const exited = once(process, 'exit')
    process.kill('SIGKILL')
    await exited
    rmSync(folder, { recursive: true, force: true })
  })
  const client = new Redis({ port: sentinel, password: REDIS_PASSWORD, retryStrategy: () => 20 })
  client.on('error', () => undefined)
  const knowsReplica = async () => /slaves=1/.test(await client.info('sentinel'))
  while (!await knowsReplica()) await new Promise(resolve => setTimeout(resolve, 50))
  client.disconnect()
  return { master, replica, sentinel }
}
