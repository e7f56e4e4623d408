import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { ClientDelivery, Exchange } from '../exchange/exchange.ts'
import { gatewayHeadersFor } from './gateway-headers.ts'
import type { Gateway } from '../parts/gateway.ts'
import { frameChunks } from '../../proxy/http/chunks.ts'
import { abort, destroyNow, flushHead, isHttp2, writeHead, type ClientResponse } from '../../proxy/client/client.ts'
import type { Deadlines } from '../../proxy/http/deadlines.ts'
import { appendVia, clientHeaders, gatewayHeaders, type GatewayHeaders } from '../../proxy/upstream/headers.ts'
import { headerValue } from '../../proxy/http/raw-headers.ts'
import { isEventStream, responseHead, type ResponseHead } from '../../proxy/upstream/response-head.ts'
import { ClientWriter } from './client-writer.ts'
import { StreamBreak, type OpenResponse, type RelayEnd, type ResponseBody } from './response-stream.ts'

/** Milliseconds in which the client can read the last bytes of a complete response after a deadline has passed. */
const FLUSH_TIMEOUT = 5_000

/** Sends the response as it arrives, as fast as the client reads. Ends it properly only if the upstream has ended it properly. */
export class Relay implements ClientDelivery {
  status = 0
  firstByteAt = 0
  delivered = false
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  readonly #res: ClientResponse
  readonly #recording: Exchange['recording']
  readonly #writer: ClientWriter
  /** Resolves when the response has ended for the client, or when the stream broke and may be continued. */
  outcome: Promise<RelayEnd | StreamBreak>
  #resolve: (outcome: RelayEnd | StreamBreak) => void
  #response: OpenResponse | null = null
  /** null = the body passes unread. */
  #body: ResponseBody | null = null
  /** Bytes that the client was sent, including bytes that are still buffered. */
  #written = 0
  #isEventStream = false
  /** The head contains the length of the body. */
  #hasContentLength = false
  /** The head was sent, and the relay waits for a response that continues the stream. */
  #awaitsResponse = false
  /** Of a broken stream that may be continued: true = the bytes so far end with a whole event. null = not broken. */
  #brokenAtBoundary: boolean | null = null
  #over = false

  constructor(gateway: Gateway, exchange: Exchange, deadlines: Deadlines) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#deadlines = deadlines
    this.#res = exchange.res
    this.#recording = exchange.recording
    this.#writer = new ClientWriter(exchange.res, () => this.#onDrain())
    const { promise, resolve } = Promise.withResolvers<RelayEnd | StreamBreak>()
    this.outcome = promise
    this.#resolve = resolve
  }

  get bytes(): number {
    return this.#written - this.#writer.unsent
  }

  /** Bytes that the client's connection has not accepted yet. */
  get unsent(): number {
    return this.#writer.unsent
  }

  /** After the start of a stream, only a stream can follow. @returns null = a response with this head may go to the client */
  accepts({ status, contentType, coding }: ResponseHead): GatewayError | null {
    // A continuation must not be compressed, because the head that the client got names no content coding.
    if (!this.#awaitsResponse || (status === 200 && isEventStream({ contentType }) && coding === null)) return null
    return new GatewayError('upstream_invalid', 'the upstream did not respond with an event stream')
  }

  /** Sends a response with this head, or continues the client's stream with it. */
  open(head: ResponseHead, response: OpenResponse): void {
    const { body } = response
    this.#response = response
    this.#body = body
    if (this.#awaitsResponse) {
      this.#awaitsResponse = false
      return
    }
    const { status, headers, httpVersion } = head
    const sent = body?.translateHeaders?.(headers) ?? headers
    // Check the translated headers, because the translation of an event stream can be a JSON array.
    this.#isEventStream = isEventStream(sent === headers ? head : responseHead(status, sent))
    // Send no Content-Length if the stages can change the length, or if only the protocol's end shows that the response is complete.
    const unsized = body !== null && (body.edits || body.terminated !== null)
    this.#hasContentLength = !unsized && headerValue(headers, 'content-length') !== null
    this.status = status
    const res = this.#res
    const sentHeaders = clientHeaders(sent, { own: this.#gatewayHeaders(), httpVersion, dropContentLength: unsized })
    writeHead(res, status, this.#exchange.edits?.onResponse(sentHeaders) ?? sentHeaders)
    frameChunks(res)
    // Node sends the head with the first bytes. Send it now if no bytes arrived together with the head.
    process.nextTick(() => {
      if (this.firstByteAt === 0 && !this.#over && !isHttp2(res)) flushHead(res)
    })
  }

  /** Sends a head before a response has arrived, for keep-alive events. After it only an event stream can follow. */
  openEventStream(): void {
    const res = this.#res
    if (this.status !== 0 || this.#over) return
    this.status = 200
    this.#isEventStream = true
    this.#awaitsResponse = true
    const { id, classified: { endpoint: { format: { requestIdHeader } } } } = this.#exchange
    const type = ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache']
    // Send the protocol's request ID header now: if the request fails, the client gets an error event and no other head.
    if (requestIdHeader !== null) type.push(requestIdHeader, id)
    const headers = [...type, ...gatewayHeaders(this.#gatewayHeaders()), 'via', appendVia('', '1.1')]
    writeHead(res, 200, this.#exchange.edits?.onResponse(headers) ?? headers)
    frameChunks(res)
  }

  /** The head was sent, and the relay waits for a response. */
  get isWaiting(): boolean {
    return this.#awaitsResponse && !this.#over
  }

  /** Sends the gateway's own events while the relay waits for a response. */
  sendEvents(events: string): void {
    if (this.isWaiting && !this.#writer.blocked) this.#write(Buffer.from(events))
  }

  #gatewayHeaders(): GatewayHeaders {
    return gatewayHeadersFor(this.#gateway, this.#exchange, this.#exchange.servedBy?.target.upstream ?? null)
  }

  /** @returns false = pause until the source is resumed */
  data(chunk: Buffer): boolean {
    // This method runs for each chunk of a stream, so it calls only what each chunk needs.
    if (this.#over || this.#brokenAtBoundary !== null) return true
    if (this.#writer.blocked) this.#deadlines.clientBlocked()
    else this.#deadlines.upstreamActive()
    if (this.firstByteAt === 0) this.begin()
    return this.#write(this.#body === null ? chunk : this.#body.push(chunk))
  }

  /** Called when the first byte of the body arrives. @returns false = the body had begun before */
  begin(): boolean {
    if (this.firstByteAt !== 0) return false
    this.firstByteAt = this.#gateway.clock.monotonic()
    return true
  }

  /** The stream broke, and `continueLater`, `finish` or `fail` was not called yet. */
  get isBroken(): boolean {
    return this.#brokenAtBoundary !== null
  }

  #write(bytes: Buffer): boolean {
    if (bytes.length === 0) return true
    this.#written += bytes.length
    this.#recording?.push(bytes)
    const wasBlocked = this.#writer.blocked
    if (this.#writer.write(bytes)) return true
    // While the relay waits for another response, the deadline for that response applies.
    if (!wasBlocked && !this.#awaitsResponse) this.#deadlines.clientBlocked()
    return false
  }

  #onDrain(): void {
    if (this.#over || this.#writer.blocked) {
      if (!this.#awaitsResponse) this.#deadlines.clientBlocked()
      return
    }
    if (!this.#awaitsResponse) this.#deadlines.clientActive()
    this.#response?.source.resume()
  }

  /** The HTTP message has ended properly. */
  end(): void {
    if (this.#over || this.#brokenAtBoundary !== null) return
    const atBoundary = this.#atBoundary
    const missingEnd = this.#body?.missingEnd ?? null
    this.#body?.end()
    if (this.#body?.terminated === false && missingEnd === null) {
      const error = new GatewayError('upstream_cut', 'the upstream ended the stream before it was complete')
      this.#break(error, atBoundary)
    } else {
      this.#conclude(missingEnd)
    }
  }

  /** @param missingEnd bytes that the client needs after the response */
  #conclude(missingEnd: Buffer | null = null): void {
    if (this.#body) this.#write(this.#body.rest())
    if (this.#body?.hasFailed === true) {
      this.#break(new GatewayError('upstream_cut', 'the upstream ended the stream before it was complete'), this.#atBoundary)
      return
    }
    if (missingEnd !== null) this.#write(missingEnd)
    this.#over = true
    const res = this.#res
    // The exchange ends when the operating system has accepted the last byte.
    this.#deadlines.clientBlocked()
    res.on('finish', () => {
      // Over HTTP/2, node emits `finish` also when the client resets the stream. A `close` event follows, which ends the exchange.
      if (isHttp2(res) && !res.stream.writableFinished) return
      this.delivered = true
      this.#close(null)
    })
    // A client that knows the body's length does not wait for the end: let other exchanges send their bytes first.
    if (this.#hasContentLength && this.#written > 0 && !isHttp2(res)) setImmediate(() => this.#writer.end())
    else this.#writer.end()
  }

  /** The response broke after its head. */
  broken(error: GatewayError): void {
    if (!this.#over && this.#brokenAtBoundary === null) this.#break(error, this.#atBoundary)
  }

  continueLater(): void {
    this.#reopen()
    this.#awaitsResponse = true
  }

  /** Completes a broken stream. @param missing the end of the stream */
  finish(missing: Buffer): void {
    this.#reopen()
    this.#write(missing)
    this.#conclude()
  }

  #reopen(): void {
    this.#body = null
    this.#brokenAtBoundary = null
    const { promise, resolve } = Promise.withResolvers<RelayEnd | StreamBreak>()
    this.outcome = promise
    this.#resolve = resolve
  }

  /** Ends a stream that has begun with an error event. @param event null = the protocol's event for `error` */
  fail(error: GatewayError, event: string | null): void {
    if (this.#over) return
    const atBoundary = this.#brokenAtBoundary ?? this.#atBoundary
    if (this.isBroken) this.#reopen()
    this.#abort(error, atBoundary, event)
  }

  /** true = the bytes so far end with a whole event. Read this before `#endBody`, which can pass on half an event. */
  get #atBoundary(): boolean {
    return this.#body?.atBoundary ?? this.#awaitsResponse
  }

  /** @param atBoundary the bytes so far end with a whole event */
  #break(error: GatewayError, atBoundary: boolean): void {
    const fault = this.#endBody()
    const isClientGone = error.code === 'client_gone' || error.code === 'client_stalled'
    // If the protocol's own end has passed, the response is complete, whatever error ended the connection.
    if (!isClientGone && !fault && atBoundary && !this.#hasContentLength && this.#body?.terminated === true) {
      this.#conclude()
      if (error.source !== 'upstream') this.#limitDelivery(error)
      return
    }
    if (!fault && this.#isEventStream && this.#response?.mayContinue === true && error.source === 'upstream') {
      this.#brokenAtBoundary = atBoundary
      this.#resolve(new StreamBreak(error))
      return
    }
    this.#abort(error, atBoundary, null, fault)
  }

  #abort(error: GatewayError, atBoundary: boolean, event: string | null, fault: GatewayError | null = null): void {
    const res = this.#res
    this.#over = true
    if (error.code === 'client_gone' || error.code === 'client_stalled') {
      destroyNow(res)
    } else {
      const takesEvent = this.#isEventStream && !this.#hasContentLength && atBoundary
      const errorEvent = takesEvent ? event ?? this.#errorEvent(error) : null
      if (errorEvent !== null) this.#recording?.push(Buffer.from(errorEvent))
      // Node may not have sent the head yet: send it, because otherwise the client would get no response.
      if (this.#written === 0 && !isHttp2(res)) flushHead(res)
      this.#writer.flush()
      abort(res, this.#gateway.clock, errorEvent)
    }
    this.#close(fault ?? error)
  }

  #errorEvent(error: GatewayError): string {
    const { id, classified: { endpoint: { format } } } = this.#exchange
    return format.streamError(error, id)
  }

  /** Gives the client a short time to read the written bytes after a deadline has passed. */
  #limitDelivery(error: GatewayError): void {
    const force = this.#gateway.clock.setTimeout(() => this.stop(error), FLUSH_TIMEOUT)
    this.#res.once('finish', () => force.cancel()).once('close', () => force.cancel())
  }

  /** @returns the error of a stage that cannot end, instead of throwing it */
  #endBody(): GatewayError | null {
    try {
      this.#body?.end()
      return null
    } catch (thrown) {
      return asGatewayError(thrown)
    }
  }

  /** Called when the client disconnects. @returns true = the client had the whole response before the upstream ended it */
  clientClosed(): boolean {
    if (this.#body?.isFinished !== true || this.isBroken || this.#awaitsResponse || this.#writer.blocked) return false
    this.#over = true
    this.delivered = true
    this.#close(null)
    return true
  }

  /** Ends the response after the client disconnected or a deadline passed. Does nothing before the head is sent. */
  stop(reason: GatewayError): void {
    if (this.status === 0) return
    if (this.isBroken) {
      this.fail(reason, null)
    } else if (!this.#over) {
      this.broken(reason)
    } else {
      // All bytes were written, but the client has not read the last of them.
      if (reason.code !== 'client_gone') destroyNow(this.#res)
      this.#close(reason)
    }
  }

  #close(end: RelayEnd): void {
    this.#writer.stop()
    this.#resolve(end)
  }
}
