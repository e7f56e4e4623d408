import type { Clock, Timer } from '../base/clock.ts'
import { GatewayError, overloaded } from '../base/errors.ts'
import type { AnswerSink } from './attempt.ts'
import type { Deadlines } from './deadlines.ts'
import type { RawHeaders } from './headers.ts'
import { Pieces } from './chunk-list.ts'

/** What the beginning of an answer shows: nothing yet, that it is one, or that it is none. */
export type Opinion = 'open' | 'good' | 'bad'

/** Looks at the beginning of an answer while the client has seen nothing of it. */
export interface Judge {
  /** Bytes that are looked at; what is longer is decided on by so much of it. */
  readonly most: number
  /** Milliseconds from the head that are waited for the decision; null = as long as the deadlines allow. */
  readonly patience: number | null
  /** Any byte of the body counts as its first; otherwise the wait for that goes on until the decision. */
  readonly anyByteCounts: boolean
  push(chunk: Buffer): Opinion
  /**
   * No more is looked at.
   *
   * @param whole the answer has ended; otherwise it is longer than `most`, or takes longer than `patience`
   */
  decide(body: Buffer, whole: boolean): Exclude<Opinion, 'open'>
  /**
   * The answer broke.
   *
   * @returns null where more is missing than its end, or where that is not certain
   */
  ending?(body: Buffer): Ending | null
  /** What was wrong where it is not an error of the upstream's own telling; null otherwise. */
  readonly fault: GatewayError | null
}

/** An answer that lacks no more than its end. */
export interface Ending {
  /** How many bytes of it are whole events. */
  readonly whole: number
  /** What it lacks behind them; empty where that is the end of HTTP's message alone. */
  readonly rest: Buffer
}

/** An answer that was kept back, whole. */
export interface KeptAnswer {
  readonly status: number
  readonly headers: RawHeaders
  readonly httpVersion: string
  readonly body: Buffer
}

/** Why an answer did not go to the client. */
export interface Refused {
  /** null: the upstream answered with an error of its own. */
  readonly error: GatewayError | null
  readonly status: number
  readonly headers: RawHeaders
  /** What can be told to the client if nothing else helps; null where not all of it is there. */
  readonly answer: KeptAnswer | null
}

export interface PreludeOptions {
  readonly clock: Clock
  readonly deadlines: Deadlines
  /** Chooses who looks at an answer; null = nobody has to. */
  judge(status: number, headers: RawHeaders): Judge | null
  /**
   * Memory for what is kept back, until it is given back or the exchange ends.
   *
   * @returns false where there is none left
   */
  take(bytes: number): boolean
  give(bytes: number): void
  /** More of the answer is kept back, and it goes on. */
  onKept(): void
  /** What the sink was given is in memory still, as the client does not take it; it was given back before. */
  retake(bytes: number): void
  /** The upstream has begun a stream in which nothing but signs of life have come so far; called once. */
  onAlive(): void
  /** Where the answer goes once it is found good. */
  readonly sink: AnswerSink
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
export class Prelude implements AnswerSink {
  /** null: the answer is good, and has gone on to the sink. */
  readonly verdict: Promise<Refused | null>
  /** What an answer lacked that went to the sink though it broke; null = none did. */
  rest: Buffer | null = null
  readonly #options: PreludeOptions
  readonly #tell: (verdict: Refused | null) => void
  #status = 0
  #headers: RawHeaders = []
  #httpVersion = '1.1'
  #judge: Judge | null = null
  readonly #kept = new Pieces()
  #patience: Timer | null = null
  #decided = false
  #passed = false

  constructor(options: PreludeOptions) {
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<Refused | null>()
    this.verdict = promise
    this.#tell = resolve
  }

  head(status: number, headers: RawHeaders, httpVersion: string): GatewayError | null {
    if (status > 599) {
      return new GatewayError('upstream_invalid', `the upstream answered with the status ${status}`)
    }
    this.#status = status
    this.#headers = headers
    this.#httpVersion = httpVersion
    const judge = this.#options.judge(status, headers)
    this.#judge = judge
    if (judge === null) this.#pass()
    else if (judge.patience !== null) {
      this.#patience = this.#options.clock.setTimeout(() => this.#decideNow(judge), judge.patience)
    }
    return null
  }

  data(chunk: Buffer): boolean {
    const judge = this.#judge as Judge
    if (judge.anyByteCounts) this.#options.deadlines.upstreamActive()
    if (!this.#options.take(chunk.length)) {
      this.#refuse(overloaded('the answers that are kept back are as many bytes as the gateway holds'), null)
      return true
    }
    this.#kept.push(chunk)
    const opinion = judge.push(chunk)
    if (opinion === 'good') return this.#pass()
    if (opinion === 'bad') {
      this.#refuse(judge.fault, this.#answer())
      return true
    }
    if (this.#kept.size > judge.most) return this.#decideNow(judge)
    this.#options.onKept()
    if (!judge.anyByteCounts && this.#kept.size === chunk.length) this.#options.onAlive()
    return true
  }

  /** By what there is, though it is not all. */
  #decideNow(judge: Judge): boolean {
    if (judge.decide(this.#kept.whole(), false) === 'good') return this.#pass()
    this.#refuse(judge.fault, null)
    return true
  }

  end(): void {
    const judge = this.#judge as Judge
    if (judge.decide(this.#kept.whole(), true) === 'bad') {
      this.#lost(judge.fault, this.#answer())
      return
    }
    this.#pass()
    if (this.#passed) this.#options.sink.end()
  }

  broken(error: GatewayError): void {
    this.#lost(error, null)
  }

  /** Ends it from outside. */
  stop(reason: GatewayError): void {
    if (this.#status !== 0) this.#lost(reason, null)
  }

  /** What came of an answer that did not go to the sink. */
  get kept(): Buffer {
    return this.#kept.whole()
  }

  /** The answer broke. What lacks only its end goes to the sink before that is told. */
  #lost(error: GatewayError | null, answer: KeptAnswer | null): void {
    const judge = this.#judge
    if (this.#decided || error?.source !== 'upstream' || !judge?.ending) {
      this.#refuse(error, answer)
      return
    }
    const body = this.#kept.whole()
    const ending = judge.ending(body)
    if (ending === null) {
      this.#refuse(error, answer)
      return
    }
    this.rest = ending.rest
    this.#pass([body.subarray(0, ending.whole)])
    if (this.#passed) this.#options.sink.broken(error)
  }

  /** @returns false when no more should come until the flow is resumed */
  #pass(pieces = this.#kept.list): boolean {
    if (!this.#decide()) return true
    const { sink, handOver, abort } = this.#options
    handOver()
    const refusal = sink.head(this.#status, this.#headers, this.#httpVersion)
    if (refusal) {
      this.#options.give(this.#kept.size)
      abort(refusal)
      this.#tell({ error: refusal, status: this.#status, headers: this.#headers, answer: null })
      return true
    }
    const { size } = this.#kept
    // Who collects it for the settlement counts the same bytes.
    this.#options.give(size)
    let more = true
    for (const piece of pieces) more = sink.data(piece)
    this.#kept.clear()
    // What the client does not take counts for as long as the exchange lasts.
    if (!more) this.#options.retake(size)
    this.#passed = true
    this.#tell(null)
    return more
  }

  #refuse(error: GatewayError | null, answer: KeptAnswer | null): void {
    if (!this.#decide()) return
    this.#options.give(this.#kept.size)
    this.#tell({ error, status: this.#status, headers: this.#headers, answer })
    this.#options.abort(error ?? new GatewayError('upstream_invalid', 'the upstream answered with an error'))
  }

  #decide(): boolean {
    if (this.#decided) return false
    this.#decided = true
    this.#patience?.cancel()
    return true
  }

  #answer(): KeptAnswer | null {
    if (this.#judge?.fault) return null
    return {
      status: this.#status, headers: this.#headers, httpVersion: this.#httpVersion, body: this.#kept.whole(),
    }
  }
}
