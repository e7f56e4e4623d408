import type { Timer } from '../../base/clock.ts'
import { GatewayError, overloaded } from '../../base/errors.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { LedgerCheckpoint } from '../../context/ledger-checkpoint.ts'
import { NOT_DELIVERED } from '../../context/upstream-attempt.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import type { RefusalReason } from '../../protocols/shared/refusal-reason.ts'
import type { Attempt, ResponseSink } from '../../proxy/attempt.ts'
import { ChunkList } from '../../proxy/chunk-list.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'
import { responseHead } from '../../proxy/response-head.ts'
import type { FramedStream, ResponseClassifier } from './classification.ts'
import type { KeepAliveTimer } from './keep-alive-timer.ts'
import type { Relay } from './relay.ts'
import { classifierFor } from './response-classifier.ts'
import type { ResponseRequirements } from './response-classifier.ts'
import { releaseHeldMemory, reserveHeldMemory, responseMemoryFor } from './response-memory.ts'

/** A whole response that was held. */
export interface HeldResponse {
  readonly status: number
  readonly headers: RawHeaders
  readonly httpVersion: string
  readonly body: Buffer
}

/** Why a response did not go to the client. */
export interface RejectedResponse {
  /** null = the upstream sent an error of its own. */
  readonly error: GatewayError | null
  readonly status: number
  readonly headers: RawHeaders
  /** What the client can get if no other attempt succeeds; null where not all of it came. */
  readonly response: HeldResponse | null
}

export interface ResponseGateOptions {
  /** Sends the response to the gate, and later to the relay. */
  readonly attempt: Attempt
  readonly relay: Relay
  readonly deadlines: Deadlines
  /** Started when a stream has begun of which nothing has come that is for the client. */
  readonly keepAlive: KeepAliveTimer
  readonly requirements: ResponseRequirements
  /** A good response has begun. @returns false where another attempt is to respond */
  claim(status: number): boolean
}

/**
 * Stands before the relay while another attempt can still follow: it holds the head and the beginning of a response
 * until it is known to be good. Then all of it goes to the client as it came, or none.
 */
export class ResponseGate implements ResponseSink {
  /** null = the response is good, and goes to the relay. */
  readonly decision: Promise<RejectedResponse | null>
  /** What a response lacked that went to the relay although it broke; null = none did. */
  missingEnd: Buffer | null = null
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #options: ResponseGateOptions
  readonly #settle: (rejected: RejectedResponse | null) => void
  readonly #checkpoint: LedgerCheckpoint
  /** The upstream's; 0 = no head came. */
  status = 0
  #headers: RawHeaders = []
  #httpVersion = '1.1'
  #classifier: ResponseClassifier | null = null
  readonly #held = new ChunkList()
  #timer: Timer | null = null
  #claimed = false
  #decided = false
  #passed = false

  constructor(gateway: Gateway, exchange: Exchange, options: ResponseGateOptions) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#options = options
    this.#checkpoint = new LedgerCheckpoint(gateway, exchange)
    const { promise, resolve } = Promise.withResolvers<RejectedResponse | null>()
    this.decision = promise
    this.#settle = resolve
  }

  /** What a response that is held until it is whole would be settled by if it ended now; null = none is. */
  get metered(): MeteredResponse | null {
    const framed = this.#classifier?.framed
    if (framed === undefined) return null
    return framed === null ? { kind: 'body', body: this.heldBody } : { kind: 'stream', meter: framed.meter }
  }

  /** The stream that goes to the relay whole; null = the relay gets bytes that were not split into events yet. */
  get framed(): FramedStream | null {
    // Of a stream that broke, the relay gets the complete events alone.
    return this.missingEnd === null ? this.#classifier?.framed ?? null : null
  }

  /** What a response is settled by that nobody awaits any more. */
  get abandoned(): MeteredResponse {
    const meter = this.#classifier?.framed?.meter ?? this.#classifier?.meter
    return meter ? { kind: 'stream', meter } : NOT_DELIVERED
  }

  /** Why the upstream refused the request; null = it did not. */
  get refusalReason(): RefusalReason | null {
    return this.#classifier?.reason ?? null
  }

  /** What came of a response that did not go to the relay. */
  get heldBody(): Buffer {
    return this.#held.concat()
  }

  head(status: number, headers: RawHeaders, httpVersion: string): GatewayError | null {
    if (status > 599) {
      return new GatewayError('upstream_invalid', `the upstream responded with the status ${status}`)
    }
    this.status = status
    this.#headers = headers
    this.#httpVersion = httpVersion
    const { requirements, relay } = this.#options
    const classifier = classifierFor(
      this.#exchange, responseHead(status, headers), requirements, relay.isWaiting,
      responseMemoryFor(this.#gateway, this.#exchange),
    )
    this.#classifier = classifier
    if (classifier === null) this.#pass()
    else if (classifier.timeoutMs !== null) {
      this.#timer = this.#gateway.clock.setTimeout(() => this.#decideNow(classifier), classifier.timeoutMs)
    }
    return null
  }

  data(chunk: Buffer): boolean {
    const classifier = this.#classifier as ResponseClassifier
    const isAwaited = !classifier.anyByteCounts
    if (!reserveHeldMemory(this.#gateway, this.#exchange, chunk.length)) {
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
    if (this.#held.size > classifier.maxBytes) return this.#decideNow(classifier)
    if (classifier.framed !== undefined) this.#checkpoint.schedule()
    // All of it is held; its first words decide between two attempts.
    if (classifier.framed?.meter.sawContent) this.#claim()
    if (isAwaited && this.#held.size === chunk.length) this.#options.keepAlive.start()
    return true
  }

  /** Decides by what came so far. */
  #decideNow(classifier: ResponseClassifier): boolean {
    if (classifier.decide(this.heldBody, false) === 'good') return this.#pass()
    this.#reject(classifier.fault, null)
    return true
  }

  end(): void {
    const classifier = this.#classifier as ResponseClassifier
    const body = this.heldBody
    if (classifier.decide(body, true) === 'bad') {
      this.#onBroken(classifier.fault, this.#heldResponse())
      return
    }
    // A filter that has read the whole stream takes all of its bytes at once.
    this.#pass(this.framed?.filter ? [body] : this.#held.list)
    if (this.#passed) this.#options.relay.end()
  }

  broken(error: GatewayError): void {
    this.#onBroken(error, null)
  }

  /** Ends it from outside. */
  stop(reason: GatewayError): void {
    if (this.status !== 0) this.#onBroken(reason, null)
  }

  /** The response broke. If only its end is missing, the relay gets the rest before the error. */
  #onBroken(error: GatewayError | null, response: HeldResponse | null): void {
    const classifier = this.#classifier
    if (this.#decided || error?.source !== 'upstream' || !classifier?.missingEnd) {
      this.#reject(error, response)
      return
    }
    const body = this.heldBody
    const missing = classifier.missingEnd(body)
    if (missing === null) {
      this.#reject(error, response)
      return
    }
    this.missingEnd = missing.suffix
    this.#pass([body.subarray(0, missing.completeBytes)])
    if (this.#passed) this.#options.relay.broken(error)
  }

  /** @returns false when no more should come until the flow is resumed */
  #pass(chunks: readonly Buffer[] = this.#held.list): boolean {
    if (!this.#decided && !this.#claim()) {
      this.#reject(null, null)
      return true
    }
    if (!this.#decide()) return true
    const { attempt, relay } = this.#options
    attempt.handOver(relay)
    const refusal = relay.head(this.status, this.#headers, this.#httpVersion)
    const { size } = this.#held
    // The stages that keep the response for its settlement reserve memory themselves.
    releaseHeldMemory(this.#gateway, this.#exchange, size)
    if (refusal) {
      attempt.abort(refusal)
      this.#settle({ error: refusal, status: this.status, headers: this.#headers, response: null })
      return true
    }
    let more = true
    for (const chunk of chunks) more = relay.data(chunk)
    this.#held.clear()
    // Until the exchange ends, what the client does not read counts.
    const { responseBytesHeld } = this.#exchange
    if (!more) reserveHeldMemory(this.#gateway, this.#exchange, Math.max(0, size - responseBytesHeld))
    this.#passed = true
    this.#settle(null)
    return more
  }

  #claim(): boolean {
    this.#claimed ||= this.#options.claim(this.status)
    return this.#claimed
  }

  #reject(error: GatewayError | null, response: HeldResponse | null): void {
    if (!this.#decide()) return
    releaseHeldMemory(this.#gateway, this.#exchange, this.#held.size)
    this.#settle({ error, status: this.status, headers: this.#headers, response })
    this.#options.attempt.abort(error ?? new GatewayError('upstream_invalid', 'the upstream responded with an error'))
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
      status: this.status, headers: this.#headers, httpVersion: this.#httpVersion, body: this.#held.concat(),
    }
  }
}
