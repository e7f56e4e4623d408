import { EventEmitter } from 'node:events'
import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock, Timer } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'
import type { Timeouts } from '../../config/types.ts'
import { ChunkList } from '../http/chunk-list.ts'
import { connectionError } from './connection-error.ts'
import { Deadlines, clientStalled } from '../http/deadlines.ts'
import { clientHeaders, type GatewayHeaders } from './headers.ts'
import { groupHeaders, type RawHeaders } from '../http/raw-headers.ts'
import type { HandshakeOwner, ProxyServer } from './http-proxy.ts'

interface TunnelOptions {
  /** The client's connection, after its handshake was read. */
  readonly socket: Duplex
  /** Bytes that the client sent after its handshake. */
  readonly head: Buffer
  /** Path and query below the upstream's url. */
  readonly path: string
  /** Flat names and values, sanitised; without the handshake headers. */
  readonly headers: readonly string[]
  /** Handshake headers of the client, lower-case. */
  readonly handshake: Readonly<Record<string, string>>
  readonly upstream: { readonly url: URL; readonly agent: Agent }
  readonly gatewayHeaders: GatewayHeaders
  readonly clock: Clock
  readonly timeouts: Timeouts
  readonly startedAt: number
  /** The tunnel is open: from now on the connection belongs to the peers. @param extensions that they agreed on; null = none */
  onOpen(extensions: string | null): void
  /** Sees each chunk after the handshake. */
  onUpstreamData(chunk: Buffer): void
  /** Can `onClientData` return a promise? */
  readonly holdsClientData: boolean
  /** Sees each chunk after the handshake. @returns a promise = forward the chunk when it resolves */
  onClientData(chunk: Buffer): Promise<void> | null
}

/** ms in which a client may read what the upstream sent before it ended. */
const FLUSH_TIMEOUT = 5_000
/** Maximum bytes of a refusal, and ms to read it. */
const MAX_REFUSAL_BYTES = 64 * 1024
const REFUSAL_TIMEOUT = 2_000

export interface HandshakeRefusal {
  readonly status: number
  readonly headers: RawHeaders
  /** null = longer than the limit, or not complete in time. */
  readonly body: Buffer | null
}

/** A WebSocket on http-proxy-3's path, byte for byte. It lasts at most `total`, and at most `idle` without a byte either way. */
export class Tunnel extends EventEmitter implements HandshakeOwner {
  readonly method = 'GET'
  readonly url: string
  readonly headers: Record<string, string | string[]>
  /** How the upstream refused the handshake; null = it did not. */
  refusal: HandshakeRefusal | null = null
  /** The first; null = neither. */
  endedBy: 'client' | 'upstream' | null = null
  readonly httpVersion = '1.1'
  readonly httpVersionMajor = 1
  readonly #options: TunnelOptions
  readonly #deadlines: Deadlines
  readonly #done = Promise.withResolvers<GatewayError | null>()
  #handshake: ClientRequest | null = null
  #connected = false
  #refusalTimer: Timer | null = null
  #upstream: Duplex | null = null
  #over = false

  constructor(options: TunnelOptions) {
    super()
    this.#options = options
    this.url = options.path
    this.headers = { ...groupHeaders(options.headers), ...options.handshake }
    const { clock, timeouts, startedAt } = options
    this.#deadlines = new Deadlines(clock, timeouts, startedAt, error => this.abort(this.#expired(error)))
  }

  /** @returns null when it was open and ended, or was refused; otherwise why it did not open, or was cut */
  run(proxy: ProxyServer): Promise<GatewayError | null> {
    const { socket, head, upstream: { url: target, agent } } = this.#options
    if (socket.destroyed) {
      this.#clientDisconnected()
      return this.#done.promise
    }
    this.#deadlines.connecting()
    socket.once('close', this.#clientDisconnected).on('readable', this.#checkClientDisconnected)
    proxy.ws(this as unknown as IncomingMessage, socket, head, { target, agent }, error => this.#failed(error))
    return this.#done.promise
  }

  readonly #clientDisconnected = (): void => {
    this.#recordFirstEnd('client')
    this.abort(new GatewayError('client_gone', 'the client closed the connection'))
  }

  /** Before the tunnel is open nothing reads the socket: a `readable` event without bytes means that it has ended. */
  readonly #checkClientDisconnected = (): void => {
    if (this.#options.socket.readableLength === 0) this.#clientDisconnected()
  }

  /** After this callback http-proxy-3 closes the client's connection, but the client must get the reason first. */
  #failed(error: Error): void {
    const socket = this.#options.socket as Duplex & { destroySoon?: () => void }
    socket.destroySoon = noop
    this.#recordFirstEnd('upstream')
    queueMicrotask(() => {
      delete socket.destroySoon
      this.#end(this.#upstream === null ? connectionError(error, this.#connected) : null)
    })
  }

  /** A handshake has no body to wait for, and in an open tunnel `idle` means that both sides are silent. */
  #expired(error: GatewayError): GatewayError {
    const { socket, timeouts: { firstByte, idle } } = this.#options
    if (error.code === 'first_byte_timeout') {
      return new GatewayError(error.code, `the upstream did not respond to the handshake within ${firstByte / 1000} s (timeouts.first_byte)`)
    }
    if (error.code !== 'idle_timeout') return error
    if (socket.writableLength > 0) return clientStalled(idle)
    return new GatewayError('idle_timeout', `no byte passed in either direction for ${idle / 1000} s (timeouts.idle)`)
  }

  abort(reason: GatewayError): void {
    this.#end(this.#upstream !== null && reason.code === 'client_gone' ? null : reason)
  }

  /** Ends both sides because of the client's data, which the upstream no longer gets; the client gets the reason. */
  refuse(reason: GatewayError): void {
    if (this.#over) return
    this.#upstream?.destroy()
    this.#options.socket.write(closeFrame(reason.message))
    this.#end(reason, true)
  }

  onHandshake(handshake: ClientRequest): void {
    this.#handshake = handshake
    // `socket` is emitted when the connection is established.
    handshake.once('socket', () => {
      this.#connected = true
      this.#deadlines.waiting()
    })
    handshake.prependListener('upgrade', (response: IncomingMessage, upstream: Duplex) => {
      this.#open(response, upstream)
    })
    // The gateway itself reports a response that is not an upgrade, in the protocol's shape.
    process.nextTick(() => {
      // Attach after http-proxy-3's own listener: an earlier reader would consume the bytes that came with the 101.
      handshake.once('upgrade', (_answer: IncomingMessage, upstream: Duplex) => this.#watch(upstream))
      handshake.removeAllListeners('response')
      handshake.once('response', (response: IncomingMessage) => this.#refused(response))
    })
  }

  #refused(response: IncomingMessage): void {
    const pieces = new ChunkList()
    const over = () => {
      if (this.#over) return
      const body = response.complete && pieces.size <= MAX_REFUSAL_BYTES ? pieces.concat() : null
      this.refusal = { status: response.statusCode ?? 0, headers: response.rawHeaders, body }
      this.#end(null)
    }
    this.#deadlines.upstreamActive()
    this.#refusalTimer = this.#options.clock.setTimeout(over, REFUSAL_TIMEOUT)
    response.on('data', (chunk: Buffer) => {
      pieces.push(chunk)
      if (pieces.size > MAX_REFUSAL_BYTES) over()
    }).once('end', over).once('close', over)
  }

  #open(response: IncomingMessage, upstream: Duplex): void {
    const { gatewayHeaders: own } = this.#options
    this.#upstream = upstream
    // As long as a `readable` listener is attached, nothing flows.
    this.#options.socket.off('readable', this.#checkClientDisconnected)
    // http-proxy-3 writes the head as a string: one byte for each character, as it was read.
    this.#options.socket.setDefaultEncoding('latin1')
    const { upgrade, 'sec-websocket-extensions': extensions = null } = response.headers
    for (const name of Object.keys(response.headers)) delete response.headers[name]
    // These two open the tunnel; all other hop-by-hop headers are removed.
    Object.assign(response.headers, { connection: 'Upgrade', upgrade }, groupHeaders(
      clientHeaders(response.rawHeaders, { own, httpVersion: '1.1', dropContentLength: false }),
    ))
    upstream.once('close', () => {
      this.#recordFirstEnd('upstream')
      this.#end(null)
    })
    this.#options.onOpen(extensions)
  }

  #watch(upstream: Duplex): void {
    const { socket, holdsClientData, onUpstreamData: onData, onClientData: onSaid } = this.#options
    const active = () => this.#deadlines.upstreamActive()
    active()
    upstream.on('data', active).on('data', onData).once('end', () => this.#recordFirstEnd('upstream'))
    // Observe each chunk before http-proxy-3 forwards it.
    if (!holdsClientData) socket.prependListener('data', onSaid)
    socket.on('data', active).once('end', () => this.#recordFirstEnd('client'))
    if (holdsClientData) this.#forwardHeld(upstream)
  }

  /** Forwards the client's chunks instead of http-proxy-3, which cannot hold a chunk back. */
  #forwardHeld(upstream: Duplex): void {
    const { socket, onClientData: onSaid } = this.#options
    const forward = (chunk: Buffer): boolean => this.#over || upstream.destroyed || upstream.write(chunk)
    socket.unpipe(upstream)
    upstream.on('drain', () => socket.resume())
    socket.on('data', (chunk: Buffer) => {
      const deciding = onSaid(chunk)
      if (deciding === null) {
        if (!forward(chunk)) socket.pause()
        return
      }
      socket.pause()
      void deciding.then(() => {
        if (forward(chunk)) socket.resume()
      })
    }).once('end', () => upstream.end())
    socket.resume()
  }

  #recordFirstEnd(side: 'client' | 'upstream'): void {
    this.endedBy ??= side
  }

  /** @param inOrder first send the client the waiting bytes */
  #end(outcome: GatewayError | null, inOrder = outcome === null): void {
    if (this.#over) return
    this.#over = true
    this.#deadlines.stop()
    this.#refusalTimer?.cancel()
    this.#options.socket.off('close', this.#clientDisconnected).off('readable', this.#checkClientDisconnected)
    this.#handshake?.destroy()
    this.#upstream?.destroy()
    if (this.#upstream) this.#closeClient(inOrder)
    this.#done.resolve(outcome)
  }

  #closeClient(inOrder: boolean): void {
    const socket = this.#options.socket as Socket
    if (!inOrder) return void socket.destroy()
    const force = this.#options.clock.setTimeout(() => socket.destroy(), FLUSH_TIMEOUT)
    socket.once('close', () => force.cancel())
    socket.destroySoon()
  }
}

/** Maximum bytes of a reason, to fit one control frame with code and header (RFC 6455 section 5.5). */
const MAX_REASON_BYTES = 123
const POLICY_VIOLATION = 1008

/** RFC 6455 section 7.4.1. */
function closeFrame(reason: string): Buffer {
  const text = Buffer.from(reason.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_REASON_BYTES))
  const head = Buffer.from([0x88, 2 + text.length, POLICY_VIOLATION >> 8, POLICY_VIOLATION & 0xff])
  return Buffer.concat([head, text])
}

function noop(): void {}
