import type { Clock, Timer } from '../../base/clock.ts'
import { GatewayError, overloaded } from '../../base/errors.ts'
import type { MissingEnd } from '../../protocols/shared/missing-end.ts'
import type { ResponseSink } from '../../proxy/attempt.ts'
import { ChunkList } from '../../proxy/chunk-list.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import type { RawHeaders } from '../../proxy/headers.ts'

/** What the beginning of an answer shows: nothing yet, that it is one, or that it is none. */
export type Classification = 'open' | 'good' | 'bad'

/** Looks at the beginning of an answer while the client has seen nothing of it. */
export interface ResponseClassifier {
  /** Bytes that are looked at; what is longer is decided on by so much of it. */
  readonly maxBytes: number
  /** Milliseconds from the head that are waited for the decision; null = as long as the deadlines allow. */
  readonly timeoutMs: number | null
  /** Any byte of the body counts as its first; otherwise the wait for that goes on until the decision. */
  readonly anyByteCounts: boolean
  push(chunk: Buffer): Classification
  /**
   * No more is looked at.
   *
   * @param whole the answer has ended; otherwise it is longer than `most`, or takes longer than `patience`
   */
  decide(body: Buffer, whole: boolean): Exclude<Classification, 'open'>
  /**
   * The answer broke.
   *
   * @returns null where more is missing than its end, or where that is not certain
   */
  missingEnd?(body: Buffer): MissingEnd | null
  /** What was wrong where it is not an error of the upstream's own telling; null otherwise. */
  readonly fault: GatewayError | null
}

/** An answer that was kept back, whole. */
export interface HeldResponse {
  readonly status: number
  readonly headers: RawHeaders
  readonly httpVersion: string
  readonly body: Buffer
}

/** Why an answer did not go to the client. */
export interface RejectedResponse {
  /** null: the upstream answered with an error of its own. */
  readonly error: GatewayError | null
  readonly status: number
  readonly headers: RawHeaders
  /** What can be told to the client if nothing else helps; null where not all of it is there. */
  readonly response: HeldResponse | null
}

export interface ResponseGateOptions {
  readonly clock: Clock
  readonly deadlines: Deadlines
  /** Chooses who looks at an answer; null = nobody has to. */
  classifierFor(status: number, headers: RawHeaders): ResponseClassifier | null
  /**
   * Memory for what is kept back, until it is given back or the exchange ends.
   *
   * @returns false where there is none left
   */
  reserve(bytes: number): boolean
  release(bytes: number): void
  /** More of the answer is kept back, and it goes on. */
  onHeld(): void
  /** What the sink was given is in memory still, as the client does not take it; it was given back before. */
  reserveAgain(bytes: number): void
  /** The upstream has begun a stream in which nothing but signs of life have come so far; called once. */
  onAlive(): void
  /** Where the answer goes once it is found good. */
  readonly sink: ResponseSink
  /** The rest of the answer goes to the sink itself. */
  handOver(): void
  /** Ends the attempt. */
  abort(reason: GatewayError): void
}

/**
 * Stands before the relay while an attempt can still be followed by another: the
 * head and the beginning of its answer are kept back until it is known whether it
 * is an answer. Then all of it goes to the client as it came, or none.
 */
export class ResponseGate implements ResponseSink {
  /** null: the answer is good, and has gone on to the sink. */
  readonly decision: Promise<RejectedResponse | null>
  /** What an answer lacked that went to the sink though it broke; null = none did. */
  missingEnd: Buffer | null = null
  readonly #options: ResponseGateOptions
  readonly #settle: (verdict: RejectedResponse | null) => void
  #status = 0
  #headers: RawHeaders = []
  #httpVersion = '1.1'
  #classifier: ResponseClassifier | null = null
  readonly #held = new ChunkList()
  #timer: Timer | null = null
  #decided = false
  #passed = false

  constructor(options: ResponseGateOptions) {
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<RejectedResponse | null>()
    this.decision = promise
    this.#settle = resolve
  }

  head(status: number, headers: RawHeaders, httpVersion: string): GatewayError | null {
    if (status > 599) {
      return new GatewayError('upstream_invalid', `the upstream answered with the status ${status}`)
    }
    this.#status = status
    this.#headers = headers
    this.#httpVersion = httpVersion
    const judge = this.#options.classifierFor(status, headers)
    this.#classifier = judge
    if (judge === null) this.#pass()
    else if (judge.timeoutMs !== null) {
      this.#timer = this.#options.clock.setTimeout(() => this.#decideNow(judge), judge.timeoutMs)
    }
    return null
  }

  data(chunk: Buffer): boolean {
    const judge = this.#classifier as ResponseClassifier
    if (judge.anyByteCounts) this.#options.deadlines.upstreamActive()
    if (!this.#options.reserve(chunk.length)) {
      this.#refuse(overloaded('the answers that are kept back are as many bytes as the gateway holds'), null)
      return true
    }
    this.#held.push(chunk)
    const opinion = judge.push(chunk)
    if (opinion === 'good') return this.#pass()
    if (opinion === 'bad') {
      this.#refuse(judge.fault, this.#heldResponse())
      return true
    }
    if (this.#held.size > judge.maxBytes) return this.#decideNow(judge)
    this.#options.onHeld()
    if (!judge.anyByteCounts && this.#held.size === chunk.length) this.#options.onAlive()
    return true
  }

  /** By what there is, though it is not all. */
  #decideNow(judge: ResponseClassifier): boolean {
    if (judge.decide(this.#held.concat(), false) === 'good') return this.#pass()
    this.#refuse(judge.fault, null)
    return true
  }

  end(): void {
    const judge = this.#classifier as ResponseClassifier
    if (judge.decide(this.#held.concat(), true) === 'bad') {
      this.#onBroken(judge.fault, this.#heldResponse())
      return
    }
    this.#pass()
    if (this.#passed) this.#options.sink.end()
  }

  broken(error: GatewayError): void {
    this.#onBroken(error, null)
  }

  /** Ends it from outside. */
  stop(reason: GatewayError): void {
    if (this.#status !== 0) this.#onBroken(reason, null)
  }

  /** What came of an answer that did not go to the sink. */
  get heldBody(): Buffer {
    return this.#held.concat()
  }

  /** The answer broke. What lacks only its end goes to the sink before that is told. */
  #onBroken(error: GatewayError | null, answer: HeldResponse | null): void {
    const judge = this.#classifier
    if (this.#decided || error?.source !== 'upstream' || !judge?.missingEnd) {
      this.#refuse(error, answer)
      return
    }
    const body = this.#held.concat()
    const ending = judge.missingEnd(body)
    if (ending === null) {
      this.#refuse(error, answer)
      return
    }
    this.missingEnd = ending.suffix
    this.#pass([body.subarray(0, ending.completeBytes)])
    if (this.#passed) this.#options.sink.broken(error)
  }

  /** @returns false when no more should come until the flow is resumed */
  #pass(pieces = this.#held.list): boolean {
    if (!this.#decide()) return true
    const { sink, handOver, abort } = this.#options
    handOver()
    const refusal = sink.head(this.#status, this.#headers, this.#httpVersion)
    if (refusal) {
      this.#options.release(this.#held.size)
      abort(refusal)
      this.#settle({ error: refusal, status: this.#status, headers: this.#headers, response: null })
      return true
    }
    const { size } = this.#held
    // Who collects it for the settlement counts the same bytes.
    this.#options.release(size)
    let more = true
    for (const piece of pieces) more = sink.data(piece)
    this.#held.clear()
    // What the client does not take counts for as long as the exchange lasts.
    if (!more) this.#options.reserveAgain(size)
    this.#passed = true
    this.#settle(null)
    return more
  }

  #refuse(error: GatewayError | null, answer: HeldResponse | null): void {
    if (!this.#decide()) return
    this.#options.release(this.#held.size)
    this.#settle({ error, status: this.#status, headers: this.#headers, response: answer })
    this.#options.abort(error ?? new GatewayError('upstream_invalid', 'the upstream answered with an error'))
  }

  #decide(): boolean {
    if (this.#decided) return false
    this.#decided = true
    this.#timer?.cancel()
    return true
  }

  #heldResponse(): HeldResponse | null {
    if (this.#classifier?.fault) return null
    return {
      status: this.#status, headers: this.#headers, httpVersion: this.#httpVersion, body: this.#held.concat(),
    }
  }
}
