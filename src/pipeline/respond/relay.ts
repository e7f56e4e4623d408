import type { Clock } from '../../base/clock.ts'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { ResponseSink } from '../../proxy/attempt.ts'
import { frameChunks } from '../../proxy/chunks.ts'
import { abort, destroyNow, flushHead, isHttp2, writeHead } from '../../proxy/client.ts'
import type { ClientResponse } from '../../proxy/client.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import { appendVia, headerValue, clientHeaders, gatewayHeaders } from '../../proxy/headers.ts'
import type { GatewayHeaders, RawHeaders } from '../../proxy/headers.ts'
import { responseHead, isEventStream } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { ClientWriter } from './client-writer.ts'

/** The body of a response on its way through the stages. All of it is synchronous and cheap. */
export interface ResponseBody {
  /** Takes the next bytes, as the upstream sent them. @returns what the client gets now */
  push(chunk: Buffer): Buffer
  /** No more will come. */
  end(): void
  /** Nothing is missing. @returns what the client gets of what was held back */
  rest(): Buffer
  /**
   * Did the protocol's own end pass by? null: the protocol marks none, so the
   * end of the HTTP message is the end.
   */
  readonly terminated: boolean | null
  /** Everything so far ended with a whole event: another one can follow. */
  readonly atBoundary: boolean
  /** Not every byte passes as it comes. */
  readonly edits: boolean
}

/** Whom a relay works for. */
export interface RelayHost {
  readonly res: ClientResponse
  /** Asked for when the head goes out. */
  gatewayHeaders(): GatewayHeaders
  readonly clock: Clock
  readonly deadlines: Deadlines
  /** Reads the head: an error refuses it; null = the body passes unread. */
  inspect(head: ResponseHead): GatewayError | ResponseBody | null
  /** The first byte of the body came. */
  onFirstByte(): void
  /** The bytes that tell the client of an error in mid-stream. */
  errorEvent(error: GatewayError): string
  /** Sees each piece of the body that the client is sent. */
  readonly onSent?: ((bytes: Buffer) => void) | undefined
  /** Lets the upstream go on. */
  resume(): void
  /**
   * A stream broke under way.
   *
   * @returns true when another answer will follow, of which the client is to see
   *   the rest; bytes when nothing was missing but these; false when it is lost
   */
  recover(error: GatewayError): boolean | Buffer
}

/** Milliseconds that a whole answer has for its last bytes when the time of the exchange is up. */
const FLUSH_TIMEOUT = 5_000

/** How an answer ended: null is a proper end. */
export type RelayEnd = GatewayError | null

/**
 * Passes one answer to the client as it comes: each chunk at once, no more than
 * the client takes, and never a proper end that the upstream did not make.
 */
export class Relay implements ResponseSink {
  /** Settles when nothing more will be sent. */
  readonly done: Promise<RelayEnd>
  /** HTTP status of the answer; 0 before its head. */
  status = 0
  /** On the monotonic clock, when the first byte of the body came; 0 before. */
  firstByteAt = 0
  /** The answer has left, whole. */
  delivered = false
  readonly #host: RelayHost
  readonly #finish: (end: RelayEnd) => void
  readonly #writer: ClientWriter
  /** null: the body passes unread. */
  #body: ResponseBody | null = null
  /** Bytes of the body that were written to the client, whether or not they left. */
  #written = 0
  #isEventStream = false
  /** The head told the length of the body. */
  #hasContentLength = false
  /** The head is out, and the stream stands where another answer can go on. */
  #awaitsResponse = false
  #over = false

  constructor(host: RelayHost) {
    this.#host = host
    const { promise, resolve } = Promise.withResolvers<RelayEnd>()
    this.done = promise
    this.#finish = resolve
    this.#writer = new ClientWriter(host.res, () => this.#onDrain())
  }

  /** Bytes of the body that the client's connection was given, without those that wait for a slow one. */
  get bytes(): number {
    return this.#written - this.#writer.unsent
  }

  head(status: number, headers: RawHeaders, httpVersion: string): GatewayError | null {
    const { res } = this.#host
    if (this.#awaitsResponse) return this.#continueWith(status, headers)
    if (status > 599) {
      return new GatewayError('upstream_invalid', `the upstream answered with the status ${status}`)
    }
    const answer = responseHead(status, headers)
    const verdict = this.#host.inspect(answer)
    if (verdict instanceof GatewayError) return verdict
    this.#body = verdict
    this.#isEventStream = isEventStream(answer)
    // A stream that ends too soon has to be seen to: with its length told, it would look whole.
    const unsized = verdict !== null && (verdict.edits || verdict.terminated !== null)
    this.#hasContentLength = !unsized && headerValue(headers, 'content-length') !== null
    this.status = status
    writeHead(res, status, clientHeaders(headers, { own: this.#host.gatewayHeaders(), httpVersion, dropContentLength: unsized }))
    if (!isHttp2(res)) frameChunks(res)
    // The head waits for what came in the same packet, and no longer.
    process.nextTick(() => {
      if (this.firstByteAt === 0 && !this.#over && !isHttp2(res)) flushHead(res)
    })
    return null
  }

  /**
   * Sends the head of a stream of events before there is one, so that the client's
   * connection does not look dead. Only such a stream can follow.
   */
  openEventStream(): void {
    const { res } = this.#host
    if (this.status !== 0 || this.#over) return
    this.status = 200
    this.#isEventStream = true
    this.#awaitsResponse = true
    const type = ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache']
    writeHead(res, 200, [...type, ...gatewayHeaders(this.#host.gatewayHeaders()), 'via', appendVia('', '1.1')])
    if (!isHttp2(res)) frameChunks(res)
  }

  /** Is the head out, and no answer on its way? */
  get isWaiting(): boolean {
    return this.#awaitsResponse && !this.#over
  }

  /** Sends events of the gateway's own while no answer is on its way. */
  sendEvents(events: string): void {
    if (this.isWaiting && !this.#writer.blocked) this.#write(Buffer.from(events))
  }

  /** Another answer goes on where the client's stream stands. */
  #continueWith(status: number, headers: RawHeaders): GatewayError | null {
    const answer = responseHead(status, headers)
    // The head that the client has tells of no coding.
    if (status !== 200 || !isEventStream(answer) || answer.coding !== null) {
      return new GatewayError('upstream_invalid', 'the upstream answered with no stream of events')
    }
    const verdict = this.#host.inspect(answer)
    if (verdict instanceof GatewayError) return verdict
    this.#awaitsResponse = false
    this.#body = verdict
    return null
  }

  data(chunk: Buffer): boolean {
    if (this.#over) return true
    const { deadlines } = this.#host
    if (this.#writer.blocked) deadlines.clientBlocked()
    else deadlines.upstreamActive()
    if (this.firstByteAt === 0) this.#begin()
    return this.#write(this.#body === null ? chunk : this.#body.push(chunk))
  }

  #begin(): void {
    this.firstByteAt = this.#host.clock.monotonic()
    this.#host.onFirstByte()
  }

  #write(bytes: Buffer): boolean {
    if (bytes.length === 0) return true
    this.#written += bytes.length
    this.#host.onSent?.(bytes)
    const wasBlocked = this.#writer.blocked
    if (this.#writer.write(bytes)) return true
    // While another answer is waited for, that wait is the one that counts.
    if (!wasBlocked && !this.#awaitsResponse) this.#host.deadlines.clientBlocked()
    return false
  }

  /** The client has read: all that was written, or a part of it. */
  #onDrain(): void {
    const { deadlines } = this.#host
    if (this.#over || this.#writer.blocked) {
      if (!this.#awaitsResponse) deadlines.clientBlocked()
      return
    }
    if (!this.#awaitsResponse) deadlines.clientActive()
    this.#host.resume()
  }

  end(): void {
    if (this.#over) return
    const atBoundary = this.#atBoundary
    this.#body?.end()
    if (this.#body?.terminated === false) {
      const error = new GatewayError('upstream_cut', 'the upstream ended the stream before its end')
      this.#break(error, atBoundary)
    } else {
      this.#conclude()
    }
  }

  #conclude(): void {
    if (this.#body) this.#write(this.#body.rest())
    this.#over = true
    const { res, deadlines } = this.#host
    // The exchange is over when the last byte is the client's system's, not ours.
    deadlines.clientBlocked()
    res.on('finish', () => {
      // Over HTTP/2 it comes too when the client has reset the stream: that it left is told next.
      if (isHttp2(res) && !res.stream.writableFinished) return
      this.delivered = true
      this.#close(null)
    })
    // All of a body whose length was told is out by now; what remains is bookkeeping, which has
    // time until everybody else got what came for them in this turn.
    if (this.#hasContentLength && this.#written > 0 && !isHttp2(res)) setImmediate(() => this.#writer.end())
    else this.#writer.end()
  }

  broken(error: GatewayError): void {
    if (!this.#over) this.#break(error, this.#atBoundary)
  }

  /** To be read before the body is ended: what is its last event then may be half of one. */
  get #atBoundary(): boolean {
    return this.#body?.atBoundary ?? this.#awaitsResponse
  }

  /** @param atBoundary everything so far ended with a whole event */
  #break(error: GatewayError, atBoundary: boolean): void {
    const { res, clock } = this.#host
    const fault = this.#endBody()
    const gone = error.code === 'client_gone' || error.code === 'client_stalled'
    // The protocol's own end has passed: nothing is missing, whatever became of the connection.
    if (!gone && !fault && atBoundary && !this.#hasContentLength && this.#body?.terminated === true) {
      this.#conclude()
      if (error.source !== 'upstream') this.#limitDelivery(error)
      return
    }
    const rescue = !fault && this.#isEventStream && this.#host.recover(error)
    if (rescue !== false) {
      this.#body = null
      if (rescue === true) {
        this.#awaitsResponse = true
      } else {
        this.#write(rescue)
        this.#conclude()
      }
      return
    }
    this.#over = true
    if (gone) {
      destroyNow(res)
    } else {
      const speak = this.#isEventStream && !this.#hasContentLength && atBoundary
      const lastWords = speak ? this.#host.errorEvent(error) : null
      if (lastWords !== null) this.#host.onSent?.(Buffer.from(lastWords))
      // All came in one packet, or what came was held back, and the head waits still: without it the client
      // had no answer at all.
      if (this.#written === 0 && !isHttp2(res)) flushHead(res)
      this.#writer.flush()
      abort(res, clock, { finalBytes: lastWords, hasContentLength: this.#hasContentLength })
    }
    this.#close(fault ?? error)
  }

  /** It should have ended by now: the client gets a moment for what was written. */
  #limitDelivery(error: GatewayError): void {
    const force = this.#host.clock.setTimeout(() => this.stop(error), FLUSH_TIMEOUT)
    this.#host.res.once('finish', () => force.cancel()).once('close', () => force.cancel())
  }

  /** A fault of a stage costs the exchange its usage figures, and no client its response. */
  #endBody(): GatewayError | null {
    try {
      this.#body?.end()
      return null
    } catch (thrown) {
      return asGatewayError(thrown)
    }
  }

  /** Ends it from outside: the client left, or a deadline passed. Before its head there is nothing to end. */
  stop(reason: GatewayError): void {
    if (this.status === 0) return
    if (!this.#over) {
      this.broken(reason)
    } else {
      // All of it was written, and the client does not take the rest.
      if (reason.code !== 'client_gone') destroyNow(this.#host.res)
      this.#close(reason)
    }
  }

  #close(end: RelayEnd): void {
    this.#writer.stop()
    this.#finish(end)
  }
}
