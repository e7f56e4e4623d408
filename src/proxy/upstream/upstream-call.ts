import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../base/clock.ts'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { BodyDecoder, ResponseReading } from '../../providers/shared/provider.ts'
import type { ClientRequest, ClientResponse } from '../client/client.ts'
import { CompressedError } from './compressed-error.ts'
import { connectionError } from './connection-error.ts'
import type { Deadlines } from '../http/deadlines.ts'
import { Decompressor, codingOf, decompressedHeaders, type DecompressorHost } from './decompressor.ts'
import { DiscardedRest } from './discarded-rest.ts'
import type { RawHeaders } from '../http/raw-headers.ts'
import { Reader, type ReadTurns } from '../http/read-turns.ts'
import { receivedHead, withHeaders, type ResponseHead } from './response-head.ts'
import { StreamMask, maskHeaders } from './secret-mask.ts'
import { isBrokenConnection, type Controller, type OutgoingRequest, type ResponseHandler, type UpstreamAddress } from './transport.ts'

export interface BodySink {
  /** @returns false = pause until `resume` */
  data(chunk: Buffer): boolean
  end(): void
  broken(error: GatewayError): void
}

export interface ResponseSink extends BodySink {
  /** @returns an error, with which the call fails, if the client must not get the response */
  head(head: ResponseHead): GatewayError | null
}

/** Runs the `web` passes of http-proxy-3 (http-proxy.ts). */
interface PassChain { web(req: IncomingMessage, res: ServerResponse, options: never): void }

/** Stands for the client's request if the gateway itself makes the request. */
const NO_CLIENT = { method: 'GET', url: '/', headers: {} } as unknown as ClientRequest

/** Milliseconds. If a connection breaks sooner, it was stale: the time is longer than a round trip, and shorter than a model's response. */
const STALE_WITHIN = 1_000

/**
 * The error with which undici aborts a request. The code is needed after a GOAWAY: with another error, undici would also fail all other
 * requests that wait for another connection.
 */
const ABORTED = Object.assign(new Error('the call was ended'), { code: 'UND_ERR_INFO' })

export interface CallCredential {
  /** @returns a promise only if the credential is fetched, or signs the request */
  authorize(request: OutgoingRequest): Promise<void> | null
  /** Secrets to mask in headers and errors of the upstream. */
  readonly secrets: readonly string[]
}

/** A call goes through these states in order. A response can begin before the whole request is sent. */
type CallState =
  /** Nothing was sent. */
  | 'made'
  /** At least a part of the request was sent, so the upstream may have begun to work. */
  | 'sent'
  /** The first byte of a response arrived, but perhaps not the whole head. */
  | 'begun'
  /** The sink has the head. */
  | 'responding'
  /** The response has ended, or the call was aborted. */
  | 'over'

export interface CallOptions {
  readonly upstream: UpstreamAddress
  /** The request with a path relative to the upstream's url and without headers. */
  readonly request: OutgoingRequest
  /** null = the upstream needs no credential. */
  readonly credential: CallCredential | null
  /** null = no client waits for the response. */
  readonly client: { readonly req: ClientRequest, readonly res: ClientResponse } | null
  readonly deadlines: Deadlines
  /** One object for all responses of the process. */
  readonly readTurns: ReadTurns
  /** true = decompress a response that is compressed although the request did not allow it. */
  readonly decompresses: boolean
  /** Converts the provider's response to the vendor's; absent or null = not needed. */
  readonly readResponse?: ((status: number, headers: RawHeaders) => ResponseReading) | null
  /** Gets the response until `handOver` sets another sink. */
  readonly sink: ResponseSink
}

/**
 * One request to an upstream and its response. The passes of the proxy complete the request, which is sent over a pooled connection, and
 * sent once more if the connection was stale. A sink gets the response as it arrives. Head and end are processed in the async context of
 * the call. Chunks are not, because entering the context would take longer than passing on a chunk.
 */
export class UpstreamCall extends AsyncResource implements ResponseHandler, DecompressorHost {
  readonly options: CallOptions
  /** The request as the passes change it. */
  readonly request: OutgoingRequest
  state: CallState = 'made'
  /** null = no response head arrived. */
  #received: ResponseHead | null = null
  #sink: BodySink
  /** null = the call does not decompress the response. */
  #decompressor: Decompressor | null = null
  /** Converts the decompressed body from the provider's format; null = not needed. */
  #decoder: BodyDecoder | null = null
  #secrets: readonly string[] = []
  /** Masks secrets in an uncompressed error; null = no secrets, or no such error. */
  #mask: StreamMask | null = null
  /** A compressed error that is held until it can be searched for secrets; null = none. */
  #compressedError: CompressedError | null = null
  /** null when the call is over, because the controller refers to the request's body. */
  #controller: Controller | null = null
  #wasSent = false
  readonly #reader = new Reader(() => this.#continueInTurn())
  /** Why the response is paused: the sink cannot take more, or (`#awaitsTurn`) it waits for a later turn. */
  #awaitsSink = false
  #awaitsTurn = false
  #fresh = false
  #retriedStale = false
  #isRelayed = false
  /** null = the request has its credential, or needs none. */
  #authorizing: Promise<void> | null = null
  #settle: (error: GatewayError | null) => void = noop
  /** When the request was sent and (`#receivedAt`) the last bytes of the response arrived, ms on the monotonic clock; 0 = not yet. */
  #sentAt = 0
  #receivedAt = 0

  constructor(options: CallOptions) {
    // Disable the destroy event on garbage collection, because nothing listens for it.
    super('UpstreamCall', { requireManualDestroy: true })
    this.options = options
    this.request = options.request
    this.#sink = options.sink
  }

  /** Runs the passes. @returns null when the sink has the response's head; an error of a pass or the upstream if there is no head */
  run(proxy: PassChain): Promise<GatewayError | null> {
    const { promise, resolve } = Promise.withResolvers<GatewayError | null>()
    this.#settle = resolve
    const { client, upstream: target } = this.options
    try {
      proxy.web((client?.req ?? NO_CLIENT) as IncomingMessage, client?.res as ServerResponse, { target, call: this } as never)
    } catch (error) {
      this.abort(asGatewayError(error))
    }
    return promise
  }

  authorize(): void {
    this.#authorizing = this.options.credential?.authorize(this.request) ?? null
  }

  send(): void {
    if (this.#authorizing === null) return this.#dispatch()
    this.#sentAt = this.options.deadlines.clock.monotonic()
    this.#authorizing.then(() => this.#dispatch()).catch(error => this.abort(asGatewayError(error)))
  }

  #dispatch(): void {
    if (this.state === 'over') return
    const { deadlines, upstream: { transport } } = this.options
    deadlines.connecting()
    if (this.#sentAt === 0) this.#sentAt = deadlines.clock.monotonic()
    transport.send(this.request, this)
  }

  /** true = the upstream may have begun to work on the request. */
  get wasSent(): boolean {
    return this.#wasSent
  }

  /** Milliseconds from sending the request to the last bytes of the response, or to the failure of the call. */
  get waitedMs(): number {
    return this.#sentAt === 0 ? 0 : (this.#receivedAt || this.options.deadlines.clock.monotonic()) - this.#sentAt
  }

  /** Frees the request's body after the whole request was sent. */
  releaseBody(): void {
    this.request.body = null
  }

  abort(reason: GatewayError): void {
    if (this.state === 'over') return
    this.state = 'over'
    this.#abortRequest()
    this.#decompressor?.destroy()
    this.#settle(reason)
  }

  #abortRequest(): void {
    this.#controller?.abort(ABORTED)
    this.#controller = null
  }

  /** Changes the sink. @param isRelayed true = the client has the first bytes, so `waitedMs` no longer grows */
  handOver(sink: BodySink, isRelayed = false): void {
    this.#sink = sink
    this.#isRelayed = isRelayed
  }

  /** Reads and drops the rest of the response for a short time, so that the connection can be reused. */
  discardRest(clock: Clock): void {
    if (this.state !== 'over') this.#sink = new DiscardedRest(clock, error => this.abort(error))
  }

  /** Resumes the response after the sink's `data` returned false. */
  resume(): void {
    if (this.state === 'over') return
    if (this.#decompressor) this.#decompressor.resume()
    else this.#continueForSink()
  }

  #continueForSink(): void {
    this.#awaitsSink = false
    if (!this.#awaitsTurn) this.#controller?.resume()
  }

  #continueInTurn(): void {
    this.#awaitsTurn = false
    if (!this.#awaitsSink && this.state !== 'over') this.#controller?.resume()
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    this.#wasSent = true
    this.#fresh = this.options.upstream.transport.fresh
    if (this.state === 'over') return this.#abortRequest()
    this.state = 'sent'
    this.options.deadlines.waiting()
  }

  onResponseStarted(): void {
    if (this.state === 'sent') this.state = 'begun'
  }

  onResponseStart(controller: Controller, status: number): void {
    this.runInAsyncScope(this.#onHead, this, controller, status)
  }

  #onHead(controller: Controller, status: number): void {
    if (this.state === 'sent') this.state = 'begun'
    this.#receivedAt = this.options.deadlines.clock.monotonic()
    // Do not pass on interim responses, such as 103.
    if (status >= 100 && status < 200 || this.state === 'over') return
    try {
      this.#received = receivedHead(status, controller.rawHeaders)
      // Free the raw headers: they are slices of socket reads, and would keep up to 64 kB in memory until the end of the response.
      controller.rawHeaders = null
      this.#secrets = this.options.credential?.secrets ?? []
      const { coding } = this.#received
      if (status >= 400 && this.#secrets.length > 0) {
        if (coding === null) this.#mask = new StreamMask(this.#secrets)
        else this.#compressedError = new CompressedError(coding, this.#secrets)
      }
      if (this.#compressedError === null) this.#start()
    } catch (thrown) {
      this.abort(asGatewayError(thrown))
    }
  }

  #start(): void {
    const { decompresses, readResponse, sink } = this.options
    const received = this.#received as ResponseHead
    try {
      const isMasked = this.#compressedError?.isMasked === true
      const coding = decompresses && !isMasked ? codingOf(received) : null
      if (coding !== null) this.#decompressor = new Decompressor(coding, this)
      const lines = maskHeaders(received.headers, this.#secrets)
      // If this call decompresses the body, the headers must not name the coding.
      const plain = isMasked || coding !== null ? decompressedHeaders(lines) : lines
      const read = readResponse?.(received.status, plain) ?? null
      this.#decoder = read?.decoder ?? null
      const refused = sink.head(withHeaders(received, read?.headers ?? plain))
      if (refused) return this.abort(refused)
    } catch (thrown) {
      return this.abort(asGatewayError(thrown))
    }
    // The sink may have aborted the call.
    if (this.state as CallState === 'over') return
    this.state = 'responding'
    this.#settle(null)
  }

  #releaseError(error: CompressedError): void {
    this.#start()
    this.#compressedError = null
    for (const chunk of error.chunks) this.onResponseData(this.#controller as Controller, chunk)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.state === 'over') return
    if (!this.#isRelayed) this.#receivedAt = this.options.deadlines.clock.monotonic()
    if (this.#compressedError !== null) {
      if (!this.#compressedError.push(chunk)) this.#releaseError(this.#compressedError)
      return
    }
    try {
      const isPlain = this.#decompressor === null && this.#decoder === null && this.#mask === null
      const goesOn = isPlain ? this.#sink.data(chunk) : this.#decompressor ? this.#decompressor.push(chunk) : this.#pass(chunk)
      const hasTurn = this.options.readTurns.count(this.#reader, chunk.length)
      if (goesOn && hasTurn) return
      controller.pause()
      if (!goesOn) {
        this.#awaitsSink = true
      } else if (!this.#awaitsTurn) {
        this.#awaitsTurn = true
        this.options.readTurns.waitForTurn(this.#reader)
      }
    } catch (thrown) {
      // An error of the gateway itself keeps its code, so that it does not look like an error of the upstream.
      this.#abortRequest()
      this.#fail(asGatewayError(thrown))
    }
  }

  /** @throws GatewayError if the decoder cannot read the bytes */
  #pass(chunk: Buffer): boolean {
    const decoder = this.#decoder
    if (decoder === null) return this.#passDecoded(chunk)
    const goesOn = this.#passDecoded(decoder.push(chunk))
    if (decoder.fault !== null) throw decoder.fault
    return goesOn
  }

  #passDecoded(bytes: Buffer): boolean {
    const masked = this.#mask === null ? bytes : this.#mask.push(bytes)
    return masked.length === 0 || this.#sink.data(masked)
  }

  /** Passes on the bytes that the decoder and the mask still hold. */
  #passRest(): void {
    const decoder = this.#decoder
    if (decoder !== null) {
      this.#passDecoded(decoder.end())
      if (decoder.fault !== null) throw decoder.fault
    }
    const bytes = this.#mask?.rest()
    if (bytes !== undefined && bytes.length > 0) this.#sink.data(bytes)
  }

  onPiece(piece: Buffer): boolean {
    return this.#pass(piece)
  }

  onDrain(): void {
    if (this.state !== 'over') this.#continueForSink()
  }

  onEnd(error: GatewayError | null): void {
    if (error === null) this.#end()
    else this.#break(error)
    // Abort the request, because the upstream may send bytes after the compressed body, which nothing reads.
    this.#abortRequest()
  }

  onResponseEnd(): void {
    this.runInAsyncScope(this.#onEndOfResponse, this)
  }

  #onEndOfResponse(): void {
    const cut = this.options.upstream.transport.breaking
      ? new GatewayError('upstream_cut', 'the upstream closed the connection in the middle of a response')
      : null
    if (this.#compressedError !== null) {
      this.#compressedError.end()
      this.#releaseError(this.#compressedError)
    }
    if (this.state !== 'over') {
      if (cut) this.#fail(cut)
      else if (this.#decompressor) this.#decompressor.end(null)
      else this.#end()
    }
    this.#controller = null
  }

  #end(): void {
    this.state = 'over'
    try {
      if (this.#decoder !== null || this.#mask !== null) this.#passRest()
      this.#sink.end()
    } catch (thrown) {
      this.#sink.broken(asGatewayError(thrown))
    }
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    // When a reused connection breaks, requests that are queued for it fail too, although nothing of them was sent: send them again.
    const wasHeldUp = this.state === 'made' && this.options.upstream.transport.breaking && isBrokenConnection(error)
    // Send again in a microtask, because undici accepts new requests only after it has failed all requests of the connection.
    queueMicrotask(() => {
      if (wasHeldUp && this.state === 'made') this.options.upstream.transport.send(this.request, this)
      else this.runInAsyncScope(this.#onError, this, error)
    })
  }

  #onError(error: Error): void {
    if (this.state === 'over') return
    if (this.#compressedError !== null) {
      this.#compressedError.end()
      this.#releaseError(this.#compressedError)
    }
    if (this.state === 'responding') {
      this.#fail(this.#translate(error))
      this.#controller = null
    } else if (this.#wasStale(error)) {
      this.#retriedStale = true
      this.#controller = null
      this.#wasSent = false
      this.state = 'made'
      this.#dispatch()
    } else {
      this.abort(this.#translate(error))
    }
  }

  /** @returns true = the peer closed an idle connection while the request was sent, so one retry is safe: the peer has not begun to work */
  #wasStale(error: Error): boolean {
    if (this.state !== 'sent' || this.#fresh || this.#retriedStale) return false
    if (!isBrokenConnection(error)) return false
    return this.options.deadlines.idleMs < STALE_WITHIN
  }

  #fail(error: GatewayError): void {
    if (this.state === 'over') return
    // Pass on the bytes that arrived before the error first.
    if (this.#decompressor) this.#decompressor.end(error)
    else this.#break(error)
  }

  #break(error: GatewayError): void {
    this.state = 'over'
    this.#sink.broken(error)
  }

  #translate(error: Error & { code?: string }): GatewayError {
    if (error instanceof GatewayError) return error
    const code = error.code ?? ''
    if (this.state === 'responding') {
      return new GatewayError('upstream_cut', 'the upstream ended the response before it was complete', { cause: error })
    }
    if (code === 'UND_ERR_INVALID_ARG') return new GatewayError('bad_header', `the request cannot be forwarded: ${error.message}`)
    if (code === 'UND_ERR_CONNECT_TIMEOUT') {
      return new GatewayError('connect_timeout', 'no connection to the upstream in time (timeouts.connect)', { cause: error })
    }
    return connectionError(error, this.#wasSent)
  }
}

function noop(): void {}
