import type { Timer } from '../../base/clock.ts'
import { GatewayError, overloaded } from '../../base/errors.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { LedgerCheckpoint } from '../parts/ledger-checkpoint.ts'
import { NOT_DELIVERED } from '../exchange/upstream-attempt.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import type { RefusalReason } from '../../protocols/endpoint/refusal-reason.ts'
import { ChunkList } from '../../proxy/http/chunk-list.ts'
import type { Deadlines } from '../../proxy/http/deadlines.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import type { ResponseSink } from '../../proxy/upstream/upstream-call.ts'
import type { FramedStream, ResponseClassifier } from './classification.ts'

export interface HeldResponse {
  readonly head: ResponseHead
  readonly body: Buffer
}

/** Why a response did not go to the client. */
export interface RejectedResponse {
  /** null = the upstream itself sent the error. */
  readonly error: GatewayError | null
  readonly head: ResponseHead
  /** The response that the client can get if no other attempt succeeds; null = incomplete. */
  readonly response: HeldResponse | null
  /** Why the upstream refused the request; null = not refused. */
  readonly reason: RefusalReason | null
}

/** The attempt that opens the client's response. */
export interface GateOutlet extends Omit<ResponseSink, 'head'> {
  /** Call this before the response goes to the client. @returns false = the client gets another attempt's response */
  claim(status: number): boolean
  /** Opens the client's response. @returns why the response cannot go to the client; null = opened */
  pass(head: ResponseHead): GatewayError | null
  /** Bytes of the response that the client's connection has not accepted yet. */
  readonly unsent: number
  abort(reason: GatewayError): void
}

export interface ResponseGateOptions {
  readonly outlet: GateOutlet
  readonly classifier: ResponseClassifier
  readonly head: ResponseHead
  readonly deadlines: Deadlines
  /** Called when a stream has begun and is held, so that the client can get keep-alive events. */
  keepAlive(): void
}

/** Holds a response until its classifier has decided. The client gets all of a good response, and nothing of a bad one. */
export class ResponseGate implements ResponseSink {
  /** Resolves to null if the response is good and goes to the client; otherwise to the rejected response. */
  readonly decision: Promise<RejectedResponse | null>
  /** The end that the gateway added to a held response that broke; null = none. */
  missingEnd: Buffer | null = null
  readonly #exchange: Exchange
  readonly #options: ResponseGateOptions
  readonly #classifier: ResponseClassifier
  readonly #resolve: (rejected: RejectedResponse | null) => void
  readonly #checkpoint: LedgerCheckpoint
  readonly #held = new ChunkList()
  #timer: Timer | null = null
  /** Bytes that the client has not read, for which memory stays reserved until the exchange ends. */
  #unread = 0
  #claimed = false
  #decided = false
  #passed = false

  constructor(gateway: Gateway, exchange: Exchange, options: ResponseGateOptions) {
    const { classifier } = options
    this.#exchange = exchange
    this.#options = options
    this.#classifier = classifier
    this.#checkpoint = new LedgerCheckpoint(gateway, exchange)
    const { promise, resolve } = Promise.withResolvers<RejectedResponse | null>()
    this.decision = promise
    this.#resolve = resolve
    if (classifier.timeoutMs !== null) this.#timer = gateway.clock.setTimeout(() => this.#decideNow(), classifier.timeoutMs)
  }

  get responseHead(): ResponseHead {
    return this.#options.head
  }

  get status(): number {
    return this.#options.head.status
  }

  /** The settlement basis of the held part of a response that is held until it is complete; null = another response. */
  get metered(): MeteredResponse | null {
    const { framed } = this.#classifier
    if (framed === undefined) return null
    return framed === null ? { kind: 'body', body: this.heldBody } : { kind: 'stream', meter: framed.meter }
  }

  /** null = the bytes were not split into events, or the client does not get all events. */
  get framed(): FramedStream | null {
    // The client gets only the complete events of a stream that broke.
    return this.missingEnd === null ? this.#classifier.framed ?? null : null
  }

  /** The settlement basis if the client no longer waits for the response. */
  get abandoned(): MeteredResponse {
    const meter = this.#classifier.framed?.meter ?? this.#classifier.meter
    return meter ? { kind: 'stream', meter } : NOT_DELIVERED
  }

  get heldBody(): Buffer {
    return this.#held.concat()
  }

  /** Does nothing, because the attempt has handled the head before it created the gate. */
  head(): null {
    return null
  }

  passNow(): void {
    this.#pass()
  }

  data(chunk: Buffer): boolean {
    const classifier = this.#classifier
    const isAwaited = !classifier.anyByteCounts
    if (!this.#exchange.memory.reserve(chunk.length)) {
      this.#reject(overloaded('the bodies of running requests and the held responses use all of server.body_memory'), null)
      return true
    }
    this.#held.push(chunk)
    const classification = classifier.push(chunk)
    if (classifier.anyByteCounts) this.#options.deadlines.upstreamActive()
    if (classification === 'good') return this.#pass()
    if (classification === 'bad') {
      this.#reject(classifier.fault, this.#heldResponse())
      return true
    }
    if (this.#held.size > classifier.maxBytes) return this.#decideNow()
    if (classifier.framed !== undefined) this.#checkpoint.schedule()
    // Although the whole response is held, its first content decides between two hedged attempts.
    if (classifier.framed?.meter.sawContent) this.#claim()
    if (isAwaited && this.#held.size === chunk.length) this.#options.keepAlive()
    return true
  }

  #decideNow(): boolean {
    if (this.#classifier.decide(this.heldBody, false) === 'good') return this.#pass()
    this.#reject(this.#classifier.fault, null)
    return true
  }

  end(): void {
    const body = this.heldBody
    if (this.#classifier.decide(body, true) === 'bad') {
      this.#onBroken(this.#classifier.fault, this.#heldResponse())
      return
    }
    // A filter that has read the whole stream must get all of the bytes in one chunk.
    this.#pass(this.framed?.filter ? [body] : this.#held.list)
    if (!this.#passed) return
    this.#options.outlet.end()
    // Count again, because the bytes of a stream that is translated to a whole body are written only at its end.
    this.#countUnread(this.#options.outlet.unsent)
  }

  broken(error: GatewayError): void {
    this.#onBroken(error, null)
  }

  stop(reason: GatewayError): void {
    this.#onBroken(reason, null)
  }

  /** Passes a broken response to the client if only its end is missing. Otherwise rejects it. */
  #onBroken(error: GatewayError | null, response: HeldResponse | null): void {
    const isUpstream = !this.#decided && error?.source === 'upstream'
    const body = this.heldBody
    const missing = isUpstream ? this.#classifier.missingEnd?.(body) ?? null : null
    if (missing === null || error === null) {
      this.#reject(error, response)
      return
    }
    this.missingEnd = missing.suffix
    this.#pass([body.subarray(0, missing.completeBytes)])
    if (this.#passed) this.#options.outlet.broken(error)
  }

  /** @returns false = pause until the flow is resumed */
  #pass(chunks: readonly Buffer[] = this.#held.list): boolean {
    if (!this.#decided && !this.#claim()) {
      this.#reject(null, null)
      return true
    }
    if (!this.#decide()) return true
    const { outlet, head } = this.#options
    const refusal = outlet.pass(head)
    const { size } = this.#held
    const { memory } = this.#exchange
    // Release the memory of the held bytes: the stages that keep bytes for settlement reserve their own memory.
    memory.release(size)
    if (refusal) {
      outlet.abort(refusal)
      this.#resolve({ error: refusal, head, response: null, reason: null })
      return true
    }
    let more = true
    for (const chunk of chunks) more = outlet.data(chunk)
    this.#held.clear()
    if (!more) this.#countUnread(size)
    this.#passed = true
    this.#resolve(null)
    return more
  }

  /** @param bytes all bytes that the client has not read, including bytes for which the stages have reserved memory */
  #countUnread(bytes: number): void {
    const { memory } = this.#exchange
    const more = Math.max(0, bytes - memory.responseBytes - this.#unread)
    if (memory.reserve(more)) this.#unread += more
  }

  #claim(): boolean {
    this.#claimed ||= this.#options.outlet.claim(this.status)
    return this.#claimed
  }

  #reject(error: GatewayError | null, response: HeldResponse | null): void {
    if (!this.#decide()) return
    const { outlet, head } = this.#options
    this.#exchange.memory.release(this.#held.size)
    this.#resolve({ error, head, response, reason: this.#classifier.reason ?? null })
    outlet.abort(error ?? new GatewayError('upstream_invalid', 'the upstream responded with an error'))
  }

  #decide(): boolean {
    if (this.#decided) return false
    this.#decided = true
    this.#timer?.cancel()
    return true
  }

  #heldResponse(): HeldResponse | null {
    return this.#classifier.fault ? null : { head: this.#options.head, body: this.#held.concat() }
  }
}
