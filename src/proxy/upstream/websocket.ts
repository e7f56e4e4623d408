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
  /** The client's connection, from which the handshake was read. */
  readonly socket: Duplex
  /** Bytes that the client sent after its handshake. */
  readonly head: Buffer
  /** Path and query, relative to the upstream's url. */
  readonly path: string
  /** The headers to send upstream, flat, without handshake headers. */
  readonly headers: readonly string[]
  /** The client's handshake headers, by lower-case name. */
  readonly handshake: Readonly<Record<string, string>>
  readonly upstream: { readonly url: URL; readonly agent: Agent }
  readonly gatewayHeaders: GatewayHeaders
  readonly clock: Clock
  readonly timeouts: Timeouts
  readonly startedAt: number
  /** Called when the upstream has accepted the handshake. @param extensions that client and upstream use; null = none */
  onOpen(extensions: string | null): void
  /** Called with each chunk of the upstream after the handshake. */
  onUpstreamData(chunk: Buffer): void
  /** true = `onClientData` can return a promise. */
  readonly holdsClientData: boolean
  /** Called with each chunk of the client after the handshake. @returns a promise = forward the chunk when the promise resolves */
  onClientData(chunk: Buffer): Promise<void> | null
}

/** Milliseconds in which the client can read the bytes that the upstream sent before it ended the connection. */
const FLUSH_TIMEOUT = 5_000
/** Maximum bytes of the body of a refusal, and ms to read the body. */
const MAX_REFUSAL_BYTES = 64 * 1024
const REFUSAL_TIMEOUT = 2_000

export interface HandshakeRefusal {
  readonly status: number
  readonly headers: RawHeaders
  /** null = longer than the limit, or not complete in time. */
  readonly body: Buffer | null
}

/** Forwards a WebSocket's bytes by http-proxy-3. Ends after the timeout `total`, or after `idle` without a byte in either direction. */
export class Tunnel extends EventEmitter implements HandshakeOwner {
  readonly method = 'GET'
  readonly url: string
  readonly headers: Record<string, string | string[]>
  /** How the upstream refused the handshake; null = it did not. */
  refusal: HandshakeRefusal | null = null
  /** The side that ended the connection first; null = neither. */
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

  /** @returns null = the WebSocket was open and has ended, or was refused; an error = it did not open, or was interrupted */
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

  /** Before the tunnel is open, nothing reads the socket. A `readable` event without bytes then means that the client has disconnected. */
  readonly #checkClientDisconnected = (): void => {
    if (this.#options.socket.readableLength === 0) this.#clientDisconnected()
  }

  /** Delays the closing of the client's connection by http-proxy-3, because the client must first get the reason. */
  #failed(error: Error): void {
    const socket = this.#options.socket as Duplex & { destroySoon?: () => void }
    socket.destroySoon = noop
    this.#recordFirstEnd('upstream')
    queueMicrotask(() => {
      delete socket.destroySoon
      this.#end(this.#upstream === null ? connectionError(error, this.#connected) : null)
    })
  }

  /** Replaces the messages of deadlines that mean something else for a WebSocket than for a request over HTTP. */
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

  /** Ends both connections because of the client's data. The upstream does not get the data, and the client gets the reason. */
  refuse(reason: GatewayError): void {
    if (this.#over) return
    this.#upstream?.destroy()
    this.#options.socket.write(closeFrame(reason.message))
    this.#end(reason, true)
  }

  onHandshake(handshake: ClientRequest): void {
    this.#handshake = handshake
    // Node emits `socket` when the connection is established.
    handshake.once('socket', () => {
      this.#connected = true
      this.#deadlines.waiting()
    })
    handshake.prependListener('upgrade', (response: IncomingMessage, upstream: Duplex) => {
      this.#open(response, upstream)
    })
    // Replace http-proxy-3's listener for `response`: the gateway itself reports a response that is not an upgrade.
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
    // Remove the `readable` listener, because the socket does not flow while it is attached.
    this.#options.socket.off('readable', this.#checkClientDisconnected)
    // http-proxy-3 writes the head as a string. Latin-1 writes each character as the byte that was read.
    this.#options.socket.setDefaultEncoding('latin1')
    const { upgrade, 'sec-websocket-extensions': extensions = null } = response.headers
    for (const name of Object.keys(response.headers)) delete response.headers[name]
    // Keep `connection` and `upgrade`, which open the tunnel. `clientHeaders` removes all other hop-by-hop headers.
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

  /** Forwards the client's chunks. Replaces http-proxy-3's pipe, which cannot hold a chunk back. */
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

  /** @param inOrder true = send the client the waiting bytes before closing */
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

/** Maximum bytes of a reason, which must fit into one control frame with its code (RFC 6455 section 5.5). */
const MAX_REASON_BYTES = 123
const POLICY_VIOLATION = 1008

/** A close frame with the code 1008, policy violation (RFC 6455 section 7.4.1). */
function closeFrame(reason: string): Buffer {
  const text = Buffer.from(reason.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_REASON_BYTES))
  const head = Buffer.from([0x88, 2 + text.length, POLICY_VIOLATION >> 8, POLICY_VIOLATION & 0xff])
  return Buffer.concat([head, text])
}

function noop(): void {}
