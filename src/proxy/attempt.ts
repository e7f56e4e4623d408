import type { Clock } from '../base/clock.ts'
import { GatewayError, asGatewayError } from '../base/errors.ts'
import type { BodyDecoder, ResponseReading } from '../providers/shared/provider.ts'
import type { ClientRequest, ClientResponse } from './client.ts'
import { CompressedError } from './compressed-error.ts'
import { connectionError } from './connection-error.ts'
import type { Deadlines } from './deadlines.ts'
import { Decompressor, codingOf, decompressedHeaders } from './decompressor.ts'
import type { DecompressorHost } from './decompressor.ts'
import { DiscardedRest } from './discarded-rest.ts'
import type { RawHeaders } from './raw-headers.ts'
import { forward } from './http-proxy.ts'
import type { ProxyServer, UpstreamAddress } from './http-proxy.ts'
import { Reader } from './read-turns.ts'
import type { ReadTurns } from './read-turns.ts'
import { receivedHead, responseHead } from './response-head.ts'
import type { ReceivedHead } from './response-head.ts'
import { StreamMask, maskHeaders } from './secret-mask.ts'
import { isBrokenConnection } from './transport.ts'
import type { Controller, OutgoingRequest, ResponseHandler } from './transport.ts'

/** Where a response goes as it comes: the relay to the client. */
export interface ResponseSink {
  /**
   * The head of the response.
   *
   * @returns an error when the response is not for the client: the attempt fails with it
   */
  head(status: number, headers: RawHeaders, httpVersion: string): GatewayError | null
  /** @returns false when no more should come until the flow is resumed */
  data(chunk: Buffer): boolean
  /** The response ended as HTTP says it should. */
  end(): void
  /** The response broke after its head. */
  broken(error: GatewayError): void
}

/** Milliseconds: well above a round trip, well below what any answer takes that was begun. */
const STALE_WITHIN = 1_000

/**
 * The error that undici gets for an attempt that is ended from here. Not the reason: where a GOAWAY has refused
 * requests, and they wait for another connection, undici fails all of them with the reason of the
 * one that is aborted first, unless that has this code.
 */
const ABORTED = Object.assign(new Error('the attempt was ended'), { code: 'UND_ERR_INFO' })

export interface AttemptOptions {
  readonly upstream: UpstreamAddress
  /** Its path is below that of the upstream's url, and it has no headers yet. */
  readonly request: OutgoingRequest
  /**
   * Adds the operator's credential to the request, later only where it has to be fetched; absent = the upstream needs
   * none.
   */
  readonly authorize?: (request: OutgoingRequest) => Promise<void> | null
  /** The secrets of the credential that was sent: they are masked in headers and errors of the upstream. */
  readonly secrets?: () => readonly string[]
  /** null = no client waits for the response. */
  readonly client: { readonly req: ClientRequest, readonly res: ClientResponse } | null
  readonly deadlines: Deadlines
  /** Those of all responses that this process reads. */
  readonly readTurns: ReadTurns
  /** A response that comes compressed all the same is unpacked on its way. */
  readonly decompresses: boolean
  /** Makes the vendor's response of the provider's; absent or null = it is that. */
  readonly readResponse?: ((status: number, headers: RawHeaders) => ResponseReading) | null
  /** Chooses where a response with that head goes, until it is handed over to another. */
  sinkFor(status: number, headers: RawHeaders): ResponseSink
}

/**
 * One try at one upstream: a request that the passes of the proxy complete, sent once over a pooled connection, or once
 * more where that was stale, and its response, which goes to a sink as it comes.
 */
export class Attempt implements ResponseHandler, DecompressorHost {
  readonly options: AttemptOptions
  /** null = no head came. */
  #received: ReceivedHead | null = null
  /** There is one as soon as the head was passed on. */
  #sink!: ResponseSink
  /** null: the response goes to the sink as it comes. */
  #decompressor: Decompressor | null = null
  /** Of what is decompressed; null = it is passed on as it is. */
  #decoder: BodyDecoder | null = null
  #secrets: readonly string[] = []
  /** Masks the secrets in an error; null = there are none, or it is no error. */
  #mask: StreamMask | null = null
  /** An error that is compressed, and held until it can be searched for the secrets; null = none is. */
  #compressedError: CompressedError | null = null
  #controller: Controller | null = null
  readonly #reader = new Reader(() => this.#continueInTurn())
  /** The upstream is paused: for the sink, or until a later turn. */
  #awaitsSink = false
  #awaitsTurn = false
  /** It is the first request on its connection. */
  #fresh = false
  /** Some byte of a response came; it need not have been a whole head. */
  #receivedBytes = false
  /** The head was passed on. */
  #responseStarted = false
  #over: GatewayError | null | undefined
  #retriedStale = false
  #isRelayed = false
  /** null = the request has its credential. */
  #authorizing: Promise<void> | null = null
  #settle: (error: GatewayError | null) => void = noop
  /** On the monotonic clock: when the request was sent, and when the latest of the response came; 0 = not yet. */
  #sentAt = 0
  #receivedAt = 0

  constructor(options: AttemptOptions) {
    this.options = options
  }

  /** The request as the passes shape it. */
  get request(): OutgoingRequest {
    return this.options.request
  }

  /**
   * @returns null once the head of a response went to the sink, or the error that
   *   kept it from coming: nothing was sent to the client then
   */
  run(proxy: ProxyServer): Promise<GatewayError | null> {
    const { promise, resolve } = Promise.withResolvers<GatewayError | null>()
    this.#settle = resolve
    forward(proxy, this)
    return promise
  }

  /** Adds the operator's credential to the request. */
  authorize(): void {
    this.#authorizing = this.options.authorize?.(this.request) ?? null
  }

  /** Sends the request, as soon as it has its credential. */
  send(): void {
    if (this.#authorizing === null) {
      this.#dispatch()
      return
    }
    this.#sentAt = this.options.deadlines.now
    this.#authorizing.then(() => this.#dispatch()).catch(error => this.abort(asGatewayError(error)))
  }

  #dispatch(): void {
    if (this.#over !== undefined) return
    const { deadlines, upstream: { transport } } = this.options
    deadlines.connecting()
    if (this.#sentAt === 0) this.#sentAt = deadlines.now
    transport.send(this.request, this)
  }

  /** The request went out on a connection: the upstream may have begun to work on it. */
  get sent(): boolean {
    return this.#controller !== null
  }

  /** Milliseconds from the request to the latest bytes of the response, or to its failure. */
  get waitedMs(): number {
    return this.#sentAt === 0 ? 0 : (this.#receivedAt || this.options.deadlines.now) - this.#sentAt
  }

  /** Tears the upstream's side down, at any moment. */
  abort(reason: GatewayError): void {
    if (this.#over !== undefined) return
    this.#over = reason
    this.#controller?.abort(ABORTED)
    this.#decompressor?.destroy()
    this.#settle(reason)
  }

  /** The client has the first bytes: what comes from now on adds nothing to the wait before them. */
  relayed(): void {
    this.#isRelayed = true
  }

  /** From now on the response goes there. */
  handOver(sink: ResponseSink): void {
    this.#sink = sink
  }

  /** Nobody needs the rest of the response. It is read for a short time, so that the connection can be used again. */
  discardRest(clock: Clock): void {
    if (this.#over === undefined) this.#sink = new DiscardedRest(clock, error => this.abort(error))
  }

  /** Lets the upstream go on after `data` had said false. */
  resume(): void {
    if (this.#over !== undefined) return
    if (this.#decompressor) this.#decompressor.resume()
    else this.#continueForSink()
  }

  #continueForSink(): void {
    this.#awaitsSink = false
    if (!this.#awaitsTurn) this.#controller?.resume()
  }

  #continueInTurn(): void {
    this.#awaitsTurn = false
    if (!this.#awaitsSink && this.#over === undefined) this.#controller?.resume()
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    this.#fresh = this.options.upstream.transport.fresh
    if (this.#over) controller.abort(ABORTED)
    else this.options.deadlines.waiting()
  }

  onResponseStarted(): void {
    this.#receivedBytes = true
  }

  onResponseStart(controller: Controller, status: number): void {
    this.#receivedBytes = true
    this.#receivedAt = this.options.deadlines.now
    // Interim answers (103 and its kin) are between the upstream and us.
    if (status >= 100 && status < 200 || this.#over !== undefined) return
    try {
      this.#received = receivedHead(status, controller.rawHeaders)
      // They are slices of what was read of the socket, up to 64 kB, which they would keep until the end.
      controller.rawHeaders = null
      this.#secrets = this.options.secrets?.() ?? []
      if (status >= 400 && this.#secrets.length > 0) this.#prepareMask(this.#received)
      if (this.#compressedError === null) this.#start()
    } catch (thrown) {
      this.abort(asGatewayError(thrown))
    }
  }

  #prepareMask({ status, headers }: ReceivedHead): void {
    const { coding } = responseHead(status, headers)
    if (coding === null) this.#mask = new StreamMask(this.#secrets)
    else this.#compressedError = new CompressedError(coding, this.#secrets)
  }

  /** Passes the head on. */
  #start(): void {
    const refused = this.#head(this.#received as ReceivedHead)
    if (refused) {
      this.abort(refused)
      return
    }
    this.#responseStarted = true
    this.#settle(null)
  }

  /** Passes on an error that was held. */
  #releaseError(error: CompressedError): void {
    this.#start()
    this.#compressedError = null
    for (const chunk of error.chunks) this.onResponseData(this.#controller as Controller, chunk)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#over !== undefined) return
    if (!this.#isRelayed) this.#receivedAt = this.options.deadlines.now
    if (this.#compressedError !== null) {
      if (!this.#compressedError.push(chunk)) this.#releaseError(this.#compressedError)
      return
    }
    try {
      const goesOn = this.#decompressor ? this.#decompressor.push(chunk) : this.#pass(chunk)
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
      // A fault of our own is not the upstream's: it has its own name.
      controller.abort(ABORTED)
      this.#fail(asGatewayError(thrown))
    }
  }

  #head({ status, headers, httpVersion }: ReceivedHead): GatewayError | null {
    try {
      this.#sink = this.options.sinkFor(status, headers)
      const lines = maskHeaders(headers, this.#secrets)
      const sent = this.#compressedError?.isMasked ? decompressedHeaders(lines) : this.#decompressedHeaders(status, lines)
      const read = this.options.readResponse?.(status, sent) ?? null
      this.#decoder = read?.decoder ?? null
      return this.#sink.head(status, read?.headers ?? sent, httpVersion)
    } catch (thrown) {
      return asGatewayError(thrown)
    }
  }

  /** The headers as the sink is to have them: without the coding, where that is undone here. */
  #decompressedHeaders(status: number, headers: RawHeaders): RawHeaders {
    const coding = this.options.decompresses ? codingOf(responseHead(status, headers)) : null
    if (coding === null) return headers
    this.#decompressor = new Decompressor(coding, this)
    return decompressedHeaders(headers)
  }

  /** @throws GatewayError where the decoder cannot read the bytes */
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

  /** Passes on what waited for more, or because it might have been the beginning of a secret. */
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
    if (this.#over === undefined) this.#continueForSink()
  }

  onEnd(error: GatewayError | null): void {
    if (error === null) this.#end()
    else this.#break(error)
    // Behind what was compressed the upstream may go on: nobody reads that.
    this.#controller?.abort(ABORTED)
  }

  onResponseEnd(): void {
    const cut = this.options.upstream.transport.breaking
      ? new GatewayError('upstream_cut', 'the upstream closed the connection in the middle of a response')
      : null
    if (this.#compressedError !== null) {
      this.#compressedError.end()
      this.#releaseError(this.#compressedError)
    }
    this.#finish(cut)
  }

  /** @param cut null = the response is complete */
  #finish(cut: GatewayError | null): void {
    if (this.#over !== undefined) return
    if (cut) this.#fail(cut)
    else if (this.#decompressor) this.#decompressor.end(null)
    else this.#end()
  }

  #end(): void {
    this.#over = null
    try {
      this.#passRest()
      this.#sink.end()
    } catch (thrown) {
      this.#sink.broken(asGatewayError(thrown))
    }
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    if (this.#over !== undefined) return
    if (this.#compressedError !== null) {
      this.#compressedError.end()
      this.#releaseError(this.#compressedError)
    }
    if (this.#responseStarted) {
      this.#fail(this.#translate(error))
    } else if (this.#wasStale(error)) {
      this.#retriedStale = true
      this.#controller = null
      this.#dispatch()
    } else {
      this.abort(this.#translate(error))
    }
  }

  /**
   * The peer had given up an idle connection just when the request went out on
   * it. That is the weather of pooled connections, not a response: once, another
   * connection is tried. A peer that took its time has read the request, and may
   * have begun with it: that is not tried again.
   */
  #wasStale(error: Error): boolean {
    if (this.#controller === null || this.#fresh || this.#receivedBytes || this.#retriedStale) return false
    if (!isBrokenConnection(error)) return false
    return this.options.deadlines.idleMs < STALE_WITHIN
  }

  /** The response breaks after its head. */
  #fail(error: GatewayError): void {
    if (this.#over !== undefined) return
    // What came before goes first.
    if (this.#decompressor) this.#decompressor.end(error)
    else this.#break(error)
  }

  #break(error: GatewayError): void {
    this.#over = error
    this.#sink.broken(error)
  }

  /** The system's and undici's errors as rows of the table. */
  #translate(error: Error & { code?: string }): GatewayError {
    if (error instanceof GatewayError) return error
    const code = error.code ?? ''
    if (this.#responseStarted) {
      return new GatewayError('upstream_cut', 'the upstream ended the response before it was complete', {
        cause: error,
      })
    }
    if (code === 'UND_ERR_INVALID_ARG') {
      return new GatewayError('bad_header', `the request cannot be forwarded: ${error.message}`)
    }
    if (code === 'UND_ERR_CONNECT_TIMEOUT') {
      return new GatewayError('connect_timeout', 'no connection to the upstream in time (timeouts.connect)', { cause: error })
    }
    return connectionError(error, this.#controller !== null)
  }
}

function noop(): void {}
