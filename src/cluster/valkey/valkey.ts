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
 * Error codes of a server that was demoted or cannot serve now. A new connection can lead to a server that can. In errors of a script,
 * older servers put words before the code.
 */
const NEEDS_NEW_CONNECTION = /(?:^|[ -])(?:READONLY|MASTERDOWN|LOADING|NOREPLICAS)\b/

/** A command failed because the connection was lost, the reply was late, or the server refused it. */
export class ValkeyError extends Error {
  override readonly name = 'ValkeyError'
}

type Client = (Redis | Cluster) & Readonly<Record<'gatewayScript', (keys: number, ...keysAndArgument: string[]) => Promise<unknown>>>

/**
 * A connection to Valkey or Redis. Each command has a deadline, and is neither queued without a connection nor sent again. A connection is
 * replaced if a reply is late or if the server does not accept writes: the new connection resolves the name or asks the sentinels again.
 */
export class Valkey {
  readonly #lua: string
  readonly #timeoutMs: number
  readonly #client: Promise<Client>
  /** true = the store is several servers, and the hash tag of a key decides on which server the key is. */
  readonly isPartitioned: boolean
  readonly #ready = Promise.withResolvers<void>()
  #wasReady = false
  #lastError: string | null = null
  /** When a server last accepted a connection, ms on a monotonic clock. */
  #acceptedAt = 0

  /** @param lua the script of `run`, with any number of keys and one argument @param timeoutMs ms for the reply to a command */
  constructor(address: ValkeyAddress, lua: string, timeoutMs: number) {
    this.#lua = lua
    this.#timeoutMs = timeoutMs
    this.isPartitioned = 'cluster' in address
    this.#client = this.#open(address)
    // Ignore the error here, because each command reports it, for example an unreadable file.
    this.#client.catch(() => undefined)
  }

  /** @param keys of the script; in a cluster, all in one slot @throws {ValkeyError} */
  run(keys: readonly string[], argument: string): Promise<unknown> {
    return this.#command(client => client.gatewayScript(keys.length, ...keys, argument))
  }

  /** @returns `since`: when `since` was first called for the key. Times are ms since 1970 on the server's clock @throws {ValkeyError} */
  since(key: string): Promise<{ readonly since: number, readonly now: number }> {
    return this.#command(async client => {
      const [seconds, microseconds] = await client.time()
      const now = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
      const isNew = await client.set(key, now, 'NX') === 'OK'
      return { since: isNew ? now : Number.parseInt(await client.get(key) ?? `${now}`), now }
    })
  }

  /** @returns ms until the response @throws {ValkeyError} */
  async ping(): Promise<number> {
    const started = performance.now()
    await this.#command(client => client.ping())
    return performance.now() - started
  }

  /** Resolves at the first connection, or after `CONNECT_TIMEOUT_MS` without a connection. */
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
        // Replace the connection, because its later replies would be late too. A connection that is being opened has its own deadline.
        if (client.status === 'ready') client.disconnect(true)
        reject(new ValkeyError(`Valkey did not answer within ${this.#timeoutMs} ms${this.#reason}`))
      }
      // Expire one turn later, so that after a pause of this process, a reply that has arrived is read first.
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
   * Reconnects if a server has accepted the connection and then sends nothing, because ioredis would wait forever. Does not interrupt
   * earlier steps, which have their own deadlines: if a query to a sentinel is interrupted, ioredis never connects again.
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
      enableOfflineQueue: false, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, connectTimeout: CONNECT_TIMEOUT_MS,
      keepAlive: 10_000, retryStrategy: retryDelay, reconnectOnError: (error: Error) => NEEDS_NEW_CONNECTION.test(error.message),
    }
    const [url = ''] = 'url' in address ? [address.url] : 'cluster' in address ? address.cluster : address.sentinels
    const options = { ...common, ...credentialsOf(url), ...tlsOf(url, address.tls) }
    const client = 'url' in address ? new Redis(address.url, options)
      : 'cluster' in address ? new Cluster([...address.cluster], {
        enableOfflineQueue: false, clusterRetryStrategy: retryDelay, redisOptions: options, dnsLookup: unresolved,
      })
      : new Redis({
        ...options, name: address.master, sentinels: address.sentinels.map(sentinelOf),
        sentinelRetryStrategy: retryDelay, sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
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
    // Keep the error for the messages of failed commands. MaxRetriesPerRequestError only says that there is no connection.
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

/** The credentials in a url. All servers of a cluster or sentinel group have the same credentials. */
function credentialsOf(url: string) {
  const { username, password } = new URL(url)
  return {
    ...username !== '' && { username: decodeURIComponent(username) },
    ...password !== '' && { password: decodeURIComponent(password) },
  }
}

/** @throws the system's error if a file cannot be read */
function tlsOf(url: string, { ca, pair }: ValkeyTls = { ca: null, pair: null }): { tls?: ConnectionOptions } {
  if (!url.startsWith('rediss:')) return {}
  return {
    tls: { ...ca !== null && { ca: readFileSync(ca) }, ...pair !== null && { cert: readFileSync(pair.cert), key: readFileSync(pair.key) } },
  }
}

function sentinelOf(url: string): { host: string, port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 26_379) }
}

/** Does not resolve the server's name, because the certificate is valid for the name and not for the address. */
function unresolved(name: string, done: (error: null, address: string) => void): void {
  done(null, name)
}
