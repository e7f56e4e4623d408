import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'

export interface TestRedis {
  readonly port: number
  /** Of this server, or of `port` in its place. */
  url(port?: number): string
  /** Asks the server itself. */
  readonly client: Redis
  stop(): Promise<void>
  /** Starts it again, empty. */
  start(): Promise<void>
}

const COMMAND = ['valkey-server', 'redis-server'].find(command => spawnSync(command, ['--version']).status === 0) ?? null

/** Why tests that need Valkey cannot run; false = they can. */
export const withoutRedis: string | false = COMMAND === null ? 'needs valkey-server or redis-server (Debian: redis-server)' : false

export const REDIS_PASSWORD = 's3cret/with:signs@'

/**
 * A server without data; it ends with the test. It takes passwords only.
 * @param options of the command line, beside those that every server here has
 */
export async function startRedis(t: Test, options: readonly string[] = []): Promise<TestRedis> {
  const command = COMMAND
  if (command === null) throw new Error('redis-server is not installed')
  const port = await freePort()
  const folder = t.testdir({})
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
  })
  await start()
  return { port, url: (at = port) => `redis://:${encodeURIComponent(REDIS_PASSWORD)}@127.0.0.1:${at}/0`, client, stop, start }
}
