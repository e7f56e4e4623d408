import type { Socket } from 'node:net'
import { Client } from 'undici'
import type { Dispatcher, buildConnector } from 'undici'
import { Slots } from '../base/slots.ts'
import { ConnectionAge } from './connection-age.ts'

type Request = readonly [options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler]

/** undici itself hands out none for a request that did not begin. */
const NO_CONTROLLER = null as unknown as Dispatcher.DispatchController

/** Milliseconds that others wait for a first connection to be made: a handshake, and no more. */
const PROBE_TIMEOUT = 1_000

interface Connection {
  readonly client: Client
  /** null until it is connected. */
  socket: Socket | null
  /** Its place in `#available`; -1 = it is not there. */
  availableIndex: number
  /** It takes no more requests: its socket is closed or never opened, or it is too old. It finishes what it has. */
  isDisconnected: boolean
  /** ms of `performance.now()` from which it is too old. */
  readonly expiresAt: number
  /** Has it take no more requests. */
  leave(): void
}

/**
 * Connections to one origin: over HTTP/1.1 one for each request in progress, over
 * HTTP/2, where the origin chooses it by ALPN, one for as many as the origin allows.
 *
 * What a request costs here does not depend on how many others there are. undici's
 * own Pool asks its connections one after the other for a free one, twice for each
 * request, and keeps those that have closed (bench/crowd.ts).
 */
export class Pool {
  readonly #origin: string
  readonly #connect: buildConnector.connector
  readonly #options: Client.Options
  readonly #age: ConnectionAge
  readonly #all = new Slots<Connection>()
  /** Those that take a request now. The last is asked first, so that those in front get old and close. */
  readonly #available: Connection[] = []
  /** Requests that wait until `#probe` knows whether they can share its connection. */
  readonly #waiting: Request[] = []
  #probe: Connection | null = null
  #mayBeShared: boolean
  /** Why nothing is taken any more. */
  #ended: Error | null = null
  #closed: Promise<void> | null = null
  #onQueueEmpty: (() => void) | null = null

  /** @param connect makes a socket, TLS included */
  constructor(origin: string, connect: buildConnector.connector, options: Client.Options, age = new ConnectionAge(Infinity)) {
    this.#age = age
    this.#origin = origin
    this.#mayBeShared = new URL(origin).protocol === 'https:'
    this.#connect = connect
    this.#options = options
  }

  /** As undici's `dispatch`; only the handler gets errors. */
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
    // A handler whose request could not start may have started another.
    if (this.#waiting.length > 0 && connection.availableIndex !== -1) this.#dispatchWaiting(connection)
  }

  /** Finishes what runs and what waits, then closes the connections. */
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
    // To close one that is about to be gone is an error.
    await Promise.all(
      Array.from(this.#all, ({ client }) => (client.destroyed ? client.destroy() : client.close())),
    )
  }

  /** Ends all at once, what runs and what waits with this error. */
  async destroy(reason: Error): Promise<void> {
    this.#ended = reason
    const left = this.#waiting.splice(0)
    const destroyed = Array.from(this.#all, ({ client }) => client.destroy(reason))
    for (const [, handler] of left) handler.onResponseError?.(NO_CONTROLLER, reason)
    this.#onQueueEmpty?.()
    await Promise.all(destroyed)
  }

  /** A connection with room, which is not among those any more; null = to wait for one is better. */
  #take(): Connection | null {
    for (;;) {
      const connection = this.#available.pop()
      if (!connection) return this.#probe ? null : this.#open()
      connection.availableIndex = -1
      if (!isTooOld(connection)) return connection
      connection.leave()
    }
  }

  #dispatchOn(connection: Connection, [options, handler]: Request): void {
    const { client } = connection
    const { size } = client.stats
    const hasRoom = client.dispatch(options, handler)
    // One that could not even begin has made nobody busy, and nobody will tell that there is room again.
    if (hasRoom || client.stats.size === size) this.#addAvailable(connection)
  }

  #addAvailable(connection: Connection): void {
    if (connection.isDisconnected || connection.availableIndex !== -1) return
    if (isTooOld(connection)) return connection.leave()
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
      // Over HTTP/2 it tells that it has room; over HTTP/1.1 each needs its own.
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

  /** It does not tell whether it can be shared: those that wait for that try for themselves. */
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

  /** Whether it can be shared is known, or that it has room: those that wait can go on. */
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

/** A name may have other addresses by now: a connection that is always in use would never learn of it. */
function isTooOld({ expiresAt }: Connection): boolean {
  return performance.now() >= expiresAt
}

/**
 * A response came before all of its request was sent: another request would have to wait behind the rest,
 * which the origin may never read (RFC 9112 section 9.5). Over HTTP/2 each goes out for itself.
 */
function isStillSending({ socket }: Connection): boolean {
  if (socket === null || ('alpnProtocol' in socket && socket.alpnProtocol === 'h2')) return false
  return socket.writableLength > 0
}
