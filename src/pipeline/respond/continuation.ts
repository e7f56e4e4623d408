import type { GatewayError } from '../../base/errors.ts'
import { reportedUsageSoFar } from '../../context/earlier-responses.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import { createInterruptedUsage } from '../../pricing/interrupted-usage.ts'
import { createResumableStream } from '../../protocols/shared/continuation.ts'
import type { PriorUsage, ResumableStream, Recovery } from '../../protocols/shared/continuation.ts'
import type { Edit } from '../../protocols/shared/splice.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'
import { ContinuationStage } from './continuation-stage.ts'
import type { ContinuationStageOptions, OnStreamFault } from './continuation-stage.ts'
import type { RelayEnd } from './relay.ts'

/**
 * Follows the client's stream, so that where it breaks another candidate can go
 * on with it (`resume: continue`). It goes through these once for each attempt:
 *
 *   1. `begin` as the attempt does, with `edits` in its request;
 *   2. `createStage` for the response, if it `follows` it;
 *   3. `awaitEnd` of it;
 *   4. where it breaks, `recovery` tells what can be done, and `continueWith` has it done.
 */
export class Continuation {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #onStreamFault: OnStreamFault
  /** A string tells why nobody could go on, whatever comes. */
  readonly #resumable: ResumableStream | string
  #stage: ContinuationStage | null = null
  /** What the client gets is no stream that can be followed: it is unknown where it stands. */
  #isUnreadable = true
  #streamError: GatewayError | null = null
  /** What the answers so far have used; null = this is the first. */
  #priorUsage: (() => PriorUsage) | null = null
  /** Of the answer that is under way: it may come and break before anybody waits for that. */
  #nextStep: PromiseWithResolvers<RetryStep> | null = null

  /** @param onFlaw gets what is wrong with an event that the client is not to see, or cannot */
  constructor(gateway: Gateway, exchange: Exchange, onFlaw: OnStreamFault) {
    const { classified, request: { body } } = exchange
    this.#gateway = gateway
    this.#exchange = exchange
    this.#onStreamFault = onFlaw
    this.#resumable = body?.json
      ? createResumableStream(classified.endpoint, body.bytes)
      : 'the request is no JSON object'
  }

  /** What broke the stream last that is to be continued; null = nothing did. */
  get streamError(): GatewayError | null {
    return this.#streamError
  }

  /** What is changed in the client's body to ask for the rest; null while all is to be asked for. */
  get edits(): ((body: Buffer) => Edit[]) | null {
    const resumption = this.#resumable
    return this.#streamError === null || typeof resumption === 'string' ? null : body => resumption.edits(body)
  }

  /** An attempt begins. */
  begin(): void {
    this.#isUnreadable = true
    if (typeof this.#resumable !== 'string') this.#nextStep = Promise.withResolvers()
  }

  /** Can a response with that head be followed, so that another can continue it? */
  follows(head: ResponseHead): boolean {
    // Compressed against our asking, its events cannot be read.
    this.#isUnreadable = !isEventStream(head) || head.coding !== null || head.status !== 200
    return typeof this.#resumable !== 'string' && !this.#isUnreadable
  }

  /** The stage for the response, the first one or one that continues it. */
  createStage(stream: Pick<ContinuationStageOptions, 'reader' | 'filter' | 'reserveMemory'>): ContinuationStage {
    const resumable = this.#resumable as ResumableStream
    const translate = this.#priorUsage && resumable.createTranslator(this.#priorUsage)
    return this.#stage = new ContinuationStage({ ...stream, resumable, translate, onStreamFault: this.#onStreamFault })
  }

  /**
   * Awaits how the answer under way ends, or where it is to go on.
   *
   * @param done settles when nothing more will be sent to the client
   */
  awaitEnd(done: Promise<RelayEnd>): Promise<RelayEnd | RetryStep> {
    return this.#nextStep ? Promise.race([done, this.#nextStep.promise]) : done
  }

  /** The stream broke: what can be done for its client. To be asked once. */
  recovery(): Recovery {
    const resumption = this.#resumable
    if (typeof resumption === 'string') return { can: 'nothing', reason: resumption }
    if (this.#isUnreadable) return { can: 'nothing', reason: 'the stream cannot be read' }
    if (this.#stage?.overflowed) return { can: 'nothing', reason: 'an event is too long to be kept' }
    const last = this.#stage?.takeLastEvent()
    const { recovery } = resumption
    return last && recovery.can === 'finish' ? { ...recovery, rest: Buffer.concat([last, recovery.rest]) } : recovery
  }

  /**
   * The stream broke. Its part of the response is billed for itself, and another attempt continues it.
   *
   * @param attempt the one that broke
   * @param step to the next attempt
   */
  continueWith(error: GatewayError, attempt: UpstreamAttempt, step: RetryStep): void {
    this.#streamError = error
    recordPartialResponse(this.#gateway, this.#exchange, attempt)
    this.#priorUsage = reportedUsageSoFar(this.#exchange)
    this.#nextStep?.resolve(step)
  }

  /** The error that the upstream told of in the stream, as it came; null = it told of none. */
  get upstreamErrorEvent(): string | null {
    const fault = this.#stage?.fault
    return fault?.kind === 'error' ? fault.bytes.toString('utf8') : null
  }
}

/** Bills an interrupted attempt for its part of the response. */
function recordPartialResponse({ accounts: { counter } }: Gateway, exchange: Exchange, attempt: UpstreamAttempt): void {
  const { prompt, classified: { endpoint } } = exchange
  const { metered, estimatedInput } = attempt
  if (metered === null) return
  attempt.share = createInterruptedUsage(counter, { endpoint, request: prompt, answer: metered, estimatedInput })
}
