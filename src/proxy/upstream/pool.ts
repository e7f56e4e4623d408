import type { Socket } from 'node:net'
import { Client, type Dispatcher, type buildConnector } from 'undici'
import { Slots } from '../../base/slots.ts'
import { ConnectionAge } from './connection-age.ts'

type Request = readonly [options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler]

/** undici too passes no controller if a request has not begun. */
const NO_CONTROLLER = null as unknown as Dispatcher.DispatchController

/** Milliseconds that other requests wait for the first connection, long enough for its TLS handshake. */
const PROBE_TIMEOUT = 1_000

interface Connection {
  readonly client: Client
  /** null = not connected yet. */
  socket: Socket | null
  /** Index in `#available`; -1 = not available. */
  availableIndex: number
  /** true = the connection takes no more requests, because its socket is closed or was never opened, or because it is too old. */
  isDisconnected: boolean
  /** When the connection becomes too old, in ms of `performance.now()`. */
  readonly expiresAt: number
  /** Makes the connection finish its requests and take no more. */
  leave(): void
}

/**
 * Connections to one origin. Each HTTP/1.1 connection runs one request, each HTTP/2 connection (by ALPN) as many as the origin allows.
 * Replaces undici's Pool, which searches its connections one by one for each request and keeps closed connections (bench/crowd.ts).
 */
export class Pool {
  readonly #origin: string
  readonly #connect: buildConnector.connector
  readonly #options: Client.Options
  readonly #age: ConnectionAge
  readonly #all = new Slots<Connection>()
  /** Connections with room. Requests use the last one, so that the first ones stay idle and close. */
  readonly #available: Connection[] = []
  /** Requests that wait until `#probe` shows whether they can share its connection. */
  readonly #waiting: Request[] = []
  #probe: Connection | null = null
  #mayBeShared: boolean
  /** Why the pool accepts no more requests; null = it accepts requests. */
  #ended: Error | null = null
  #closed: Promise<void> | null = null
  #onQueueEmpty: (() => void) | null = null

  constructor(origin: string, connect: buildConnector.connector, options: Client.Options, age = new ConnectionAge(Infinity)) {
    this.#age = age
    this.#origin = origin
    this.#mayBeShared = new URL(origin).protocol === 'https:'
    this.#connect = connect
    this.#options = options
  }

  /** Like undici's `dispatch`, but reports errors only to the handler. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    if (this.#ended) {
      handler.onResponseError?.(NO_CONTROLLER, this.#ended)
      return
    }
    const request: Request = [options, handler]
    const connection = this.#take()
    if (!connection) {
      this.#waiting.push(request)
      return
    }
    this.#dispatchOn(connection, request)
    // A request that failed at once may have made its handler dispatch another request, which now waits.
    if (this.#waiting.length > 0 && connection.availableIndex !== -1) this.#dispatchWaiting(connection)
  }

  /** Finishes running and waiting requests, then closes the connections. */
  close(): Promise<void> {
    this.#ended ??= new Error('the connections are being closed')
    this.#closed ??= this.#finish()
    return this.#closed
  }

  async #finish(): Promise<void> {
    if (this.#waiting.length > 0) {
      await new Promise<void>(resolve => {
        this.#onQueueEmpty = resolve
      })
    }
    // Closing a client that is already destroyed is an error.
    await Promise.all(Array.from(this.#all, ({ client }) => (client.destroyed ? client.destroy() : client.close())))
  }

  /** Ends all running and waiting requests at once. */
  async destroy(reason: Error): Promise<void> {
    this.#ended = reason
    const left = this.#waiting.splice(0)
    const destroyed = Array.from(this.#all, ({ client }) => client.destroy(reason))
    for (const [, handler] of left) handler.onResponseError?.(NO_CONTROLLER, reason)
    this.#onQueueEmpty?.()
    await Promise.all(destroyed)
  }

  /** Removes a connection with room from `#available`, or opens one. @returns null = wait for the probe */
  #take(): Connection | null {
    for (;;) {
      const connection = this.#available.pop()
      if (!connection) return this.#probe ? null : this.#open()
      connection.availableIndex = -1
      // Replace an old connection, because a connection that is always in use ignores changes in DNS.
      if (performance.now() < connection.expiresAt) return connection
      connection.leave()
    }
  }

  #dispatchOn(connection: Connection, [options, handler]: Request): void {
    const { client } = connection
    const { size } = client.stats
    const hasRoom = client.dispatch(options, handler)
    // If the request could not begin, the connection still has room, and no event would make it available again.
    if (hasRoom || client.stats.size === size) this.#addAvailable(connection)
  }

  #addAvailable(connection: Connection): void {
    if (connection.isDisconnected || connection.availableIndex !== -1) return
    if (performance.now() >= connection.expiresAt) return connection.leave()
    connection.availableIndex = this.#available.push(connection) - 1
  }

  #open(): Connection {
    const connect: buildConnector.connector = (target, callback) => {
      this.#connect(target, (...args) => {
        const socket = args[1]
        if (socket) {
          connection.socket = socket
          if ('alpnProtocol' in socket) this.#mayBeShared = socket.alpnProtocol === 'h2'
        }
        callback(...args)
      })
    }
    const client = new Client(this.#origin, { ...this.#options, connect })
    const forget = () => this.#all.delete(slot)
    const connection: Connection = {
      client, socket: null, availableIndex: -1, isDisconnected: false, expiresAt: this.#age.expiry(),
      leave: () => {
        if (connection.isDisconnected) return
        connection.isDisconnected = true
        this.#removeAvailable(connection)
        client.close().then(forget, forget)
      },
    }
    const slot = this.#all.add(connection)
    if (this.#mayBeShared) {
      this.#probe = connection
      setTimeout(() => this.#giveUpOn(connection), PROBE_TIMEOUT).unref()
    }
    client.on('connect', () => {
      // If the connection cannot be shared, each waiting request opens its own. If it can, `drain` reports when it has room.
      if (!this.#mayBeShared) this.#dispatchWaiting(connection)
    })
    client.on('drain', () => {
      if (isStillSending(connection)) void client.destroy()
      else this.#addAvailable(connection)
      this.#dispatchWaiting(connection)
    })
    const leave = () => {
      if (connection.isDisconnected) return
      connection.leave()
      this.#dispatchWaiting(connection)
    }
    client.on('disconnect', leave).on('connectionError', () => {
      this.#giveUpOn(connection)
      leave()
    })
    return connection
  }

  /** Lets waiting requests open their own connections, because the probe has not shown in time whether they can share its connection. */
  #giveUpOn(connection: Connection): void {
    if (this.#probe !== connection) return
    this.#mayBeShared = false
    this.#dispatchWaiting(connection)
  }

  #removeAvailable(connection: Connection): void {
    if (connection.availableIndex === -1) return
    const last = this.#available.pop() as Connection
    if (last !== connection) {
      this.#available[connection.availableIndex] = last
      last.availableIndex = connection.availableIndex
    }
    connection.availableIndex = -1
  }

  /** Dispatches waiting requests after a connection got room, or turned out not to be shared. */
  #dispatchWaiting(connection: Connection): void {
    if (this.#probe === connection) this.#probe = null
    while (this.#waiting.length > 0) {
      const next = this.#take()
      if (!next) return
      this.#dispatchOn(next, this.#waiting.shift() as Request)
    }
    this.#onQueueEmpty?.()
  }
}

/** @returns true = the response came before the HTTP/1.1 request was sent, whose rest would delay the next one (RFC 9112 section 9.5) */
function isStillSending({ socket }: Connection): boolean {
  if (socket === null || ('alpnProtocol' in socket && socket.alpnProtocol === 'h2')) return false
  return socket.writableLength > 0
}
