import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import type { Cluster, Redis } from 'ioredis'
import { messageOf } from '../../base/message-of.ts'
import type { ValkeyAddress, ValkeyTls } from '../../config/cluster-types.ts'
import { ignoreSecondErrors } from '../../patches/second-errors.ts'

const CONNECT_TIMEOUT_MS = 1_000
const MAX_RECONNECT_MS = 500
/**
 * The server was demoted, or cannot serve for now: only another connection leads to the one that can. Older servers put the code of an
 * error in a script behind words of their own.
 */
const NEEDS_NEW_CONNECTION = /(?:^|[ -])(?:READONLY|MASTERDOWN|LOADING|NOREPLICAS)\b/

/** The error for a lost connection or a late reply. */
export class ValkeyError extends Error {
  override readonly name = 'ValkeyError'
}

/** The client with the script as a command. */
type Client = (Redis | Cluster) & Readonly<Record<'gatewayScript', (keys: number, ...keysAndArgument: string[]) => Promise<unknown>>>

/**
 * A connection to Valkey or Redis. No command waits longer than its deadline: none is queued while there is no
 * connection, none is sent again, and a connection that does not reply in time is replaced. So is one to a server that
 * takes no writes: a new one asks the name or the sentinels again.
 */
export class Valkey {
  readonly #lua: string
  readonly #timeoutMs: number
  readonly #client: Promise<Client>
  /** Keys are spread over several servers. */
  readonly isPartitioned: boolean
  readonly #ready = Promise.withResolvers<void>()
  /** Whether there was a connection before. */
  #wasReady = false
  /** Why the last connection ended or failed. */
  #lastError: string | null = null
  /** When the server accepted the connection, ms of a monotonic clock. */
  #acceptedAt = 0

  /**
   * @param lua the script that `run` runs; it has any number of keys and one argument
   * @param timeoutMs ms for the reply to a command
   */
  constructor(address: ValkeyAddress, lua: string, timeoutMs: number) {
    this.#lua = lua
    this.#timeoutMs = timeoutMs
    this.isPartitioned = 'cluster' in address
    this.#client = this.#open(address)
    // Each command reports a file that cannot be read.
    this.#client.catch(() => undefined)
  }

  /**
   * @param keys those that the script reads and writes; in a cluster of one slot
   * @throws {ValkeyError}
   */
  run(keys: readonly string[], argument: string): Promise<unknown> {
    return this.#command(client => client.gatewayScript(keys.length, ...keys, argument))
  }

  /**
   * The time since which the server has its data: when it was first asked for a key.
   * @returns both ms since 1970 by the clock of the server
   * @throws {ValkeyError}
   */
  since(key: string): Promise<{ readonly since: number, readonly now: number }> {
    return this.#command(async client => {
      const [seconds, microseconds] = await client.time()
      const now = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
      const isNew = await client.set(key, now, 'NX') === 'OK'
      return { since: isNew ? now : Number.parseInt(await client.get(key) ?? `${now}`), now }
    })
  }

  /**
   * Checks that the server responds.
   * @returns ms until the response
   * @throws {ValkeyError}
   */
  async ping(): Promise<number> {
    const started = performance.now()
    await this.#command(client => client.ping())
    return performance.now() - started
  }

  /** Resolves when there is a connection for the first time, or after a second without one. */
  async connected(): Promise<void> {
    const deadline = new AbortController()
    const late = sleep(CONNECT_TIMEOUT_MS, undefined, { signal: deadline.signal }).catch(() => undefined)
    await Promise.race([this.#ready.promise, late])
    deadline.abort()
  }

  async close(): Promise<void> {
    const client = await this.#client.catch(() => null)
    client?.disconnect()
  }

  async #command<T>(send: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.#client.catch((error: unknown) => {
      throw new ValkeyError(messageOf(error))
    })
    let isDone = false
    let deadline: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const expire = (): void => {
        if (isDone) return
        // Later replies of this connection would be late too. A connection that is being opened has its own deadline.
        if (client.status === 'ready') client.disconnect(true)
        reject(new ValkeyError(`Valkey did not answer within ${this.#timeoutMs} ms${this.#reason}`))
      }
      // After a pause of this process, a reply may have arrived: read it first.
      deadline = setTimeout(() => setImmediate(expire), this.#timeoutMs)
    })
    try {
      if (client.status !== 'ready') {
        this.#reconnectIfStuck(client)
        if (this.#wasReady) throw new ValkeyError(`there is no connection to Valkey${this.#reason}`)
        await Promise.race([this.#ready.promise, late])
      }
      return await Promise.race([send(client), late])
    } catch (error) {
      throw error instanceof ValkeyError ? error : new ValkeyError(messageOf(error))
    } finally {
      isDone = true
      clearTimeout(deadline)
    }
  }

  get #reason(): string {
    return this.#lastError === null ? '' : `: ${this.#lastError}`
  }

  /**
   * Reconnects if a server accepted the connection and then sent nothing: the client itself would wait without limit. Steps
   * before that have deadlines of their own, and an interruption would harm: during a query to a sentinel, ioredis would never
   * connect again.
   */
  #reconnectIfStuck(client: Client): void {
    const now = performance.now()
    if (client.status !== 'connect' || now - this.#acceptedAt < CONNECT_TIMEOUT_MS) return
    this.#acceptedAt = now
    client.disconnect(true)
  }

  async #open(address: ValkeyAddress): Promise<Client> {
    const { Redis, Cluster, AbstractConnector } = await import('ioredis')
    ignoreSecondErrors(AbstractConnector)
    const common = {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: CONNECT_TIMEOUT_MS,
      keepAlive: 10_000,
      retryStrategy: retryDelay,
      reconnectOnError: (error: Error) => NEEDS_NEW_CONNECTION.test(error.message),
    }
    const [url = ''] = 'url' in address ? [address.url] : 'cluster' in address ? address.cluster : address.sentinels
    const options = { ...common, ...credentialsOf(url), ...tlsOf(url, address.tls) }
    const client = 'url' in address ? new Redis(address.url, options)
      : 'cluster' in address ? new Cluster([...address.cluster], {
        enableOfflineQueue: false, clusterRetryStrategy: retryDelay, redisOptions: options, dnsLookup: unresolved,
      })
      : new Redis({
        ...options,
        name: address.master,
        sentinelRetryStrategy: retryDelay,
        sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
        sentinels: address.sentinels.map(sentinelOf),
        ...address.sentinel_password !== undefined && { sentinelPassword: address.sentinel_password },
        ...options.tls && { sentinelTLS: options.tls, enableTLSForSentinelMode: true },
      })
    client.on('connect', () => {
      this.#acceptedAt = performance.now()
    })
    client.on('ready', () => {
      this.#wasReady = true
      this.#lastError = null
      this.#ready.resolve()
    })
    // Each failed command reports it. Errors of the client's own commands say only that there is no connection.
    client.on('error', (error: Error) => {
      if (error.name !== 'MaxRetriesPerRequestError') this.#lastError = messageOf(error)
    })
    client.defineCommand('gatewayScript', { lua: this.#lua })
    return client as unknown as Client
  }
}

/** @param attempt from 1 @returns ms */
function retryDelay(attempt: number): number {
  return Math.min(attempt * 50, MAX_RECONNECT_MS)
}

/** The credentials for all servers of a group: they are the same for each. */
function credentialsOf(url: string) {
  const { username, password } = new URL(url)
  return {
    ...username !== '' && { username: decodeURIComponent(username) },
    ...password !== '' && { password: decodeURIComponent(password) },
  }
}

/** @throws the system's error for a file that cannot be read */
function tlsOf(url: string, { ca, pair }: ValkeyTls = { ca: null, pair: null }): { tls?: ConnectionOptions } {
  if (!url.startsWith('rediss:')) return {}
  return {
    tls: {
      ...ca !== null && { ca: readFileSync(ca) },
      ...pair !== null && { cert: readFileSync(pair.cert), key: readFileSync(pair.key) },
    },
  }
}

function sentinelOf(url: string): { host: string, port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 26_379) }
}

/** Keeps the server's name instead of resolving it: a certificate is valid for the name, and not for its address. */
function unresolved(name: string, done: (error: null, address: string) => void): void {
  done(null, name)
}
