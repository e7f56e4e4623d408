import type { GatewayError } from '../../base/errors.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { createInterruptedUsage } from '../../pricing/interrupted-usage.ts'
import { addUsage } from '../../pricing/settled-cost.ts'
import { createResumableStream } from '../../protocols/endpoint/create-resumable-stream.ts'
import type { PriorUsage, ResumableStream, Recovery } from '../../protocols/events/resumable-stream.ts'
import type { Edit } from '../../protocols/json/splice.ts'
import { blankUsage } from '../../protocols/usage/usage.ts'
import { isEventStream, type ResponseHead } from '../../proxy/upstream/response-head.ts'
import { ContinuationStage, type ContinuationStageOptions, type OnStreamFault } from './continuation-stage.ts'

/**
 * Follows the client's stream, so that another target can continue the stream (`resume: continue`). For each attempt, call `begin` when
 * the attempt starts, apply `edits` to the request, and call `createStage` for the response if `follows` is true. If the stream breaks,
 * call `recovery`, and call `interrupted` before the next attempt.
 */
export class Continuation {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #onStreamFault: OnStreamFault
  /** A string = the reason why no target can continue the response. */
  readonly #resumable: ResumableStream | string
  #stage: ContinuationStage | null = null
  /** The stage does not read the response, so it is unknown what the client got. */
  #isUnreadable = true
  #streamError: GatewayError | null = null
  /** The usage of the earlier attempts' parts; null = the first attempt is running. */
  #priorUsage: (() => PriorUsage) | null = null

  /** @param onStreamFault called with the error of an event that the client must not get */
  constructor(gateway: Gateway, exchange: Exchange, onStreamFault: OnStreamFault) {
    const { classified, request: { body } } = exchange
    this.#gateway = gateway
    this.#exchange = exchange
    this.#onStreamFault = onStreamFault
    this.#resumable = body?.json ? createResumableStream(classified.endpoint, body.bytes) : 'the request is not a JSON object'
  }

  /** The latest error that broke the stream; null = the stream has not broken. */
  get streamError(): GatewayError | null {
    return this.#streamError
  }

  /** @returns true = another target can continue the response to this request */
  get isPossible(): boolean {
    return typeof this.#resumable !== 'string'
  }

  /** true = only a target that continues a text can continue the stream. */
  get needsPrefill(): boolean {
    return typeof this.#resumable !== 'string' && this.#resumable.hasText
  }

  /** Edits of the client's body that request the rest of the response; null = request a whole response. */
  get edits(): ((body: Buffer) => Edit[]) | null {
    const resumable = this.#resumable
    return this.#streamError === null || typeof resumable === 'string' ? null : body => resumable.edits(body)
  }

  begin(): void {
    this.#isUnreadable = true
  }

  /** @returns true = another response can continue a response with this head */
  follows(head: ResponseHead): boolean {
    // Only uncompressed events can be read.
    this.#isUnreadable = !isEventStream(head) || head.coding !== null || head.status !== 200
    return typeof this.#resumable !== 'string' && !this.#isUnreadable
  }

  /** Creates the stage for the first response, or for a response that continues it. */
  createStage(stream: Pick<ContinuationStageOptions, 'reader' | 'filter' | 'reserveMemory'>): ContinuationStage {
    const resumable = this.#resumable as ResumableStream
    const translate = this.#priorUsage && resumable.createTranslator(this.#priorUsage)
    const { clock } = this.#gateway
    const { streams, format: { keepAlive } } = this.#exchange.classified.endpoint
    const calls = streams?.createCallReader?.() ?? null
    return this.#stage = new ContinuationStage({
      ...stream, resumable, translate, calls, clock, keepAlive, onStreamFault: this.#onStreamFault,
    })
  }

  /** @returns how a stream that broke can end or continue for the client. Call this once for each break */
  recovery(): Recovery {
    const resumable = this.#resumable
    if (typeof resumable === 'string') return { can: 'nothing', reason: resumable }
    if (this.#isUnreadable) return { can: 'nothing', reason: 'the stream cannot be read' }
    if (this.#stage?.overflowed) return { can: 'nothing', reason: 'an event is too long to be kept' }
    const last = this.#stage?.takeLastEvent()
    const { recovery } = resumable
    return last && recovery.can === 'finish' ? { ...recovery, rest: Buffer.concat([last, recovery.rest]) } : recovery
  }

  /** Prepares the continuation by another attempt, and bills the part so far separately. @param attempt the attempt that broke */
  interrupted(error: GatewayError, attempt: UpstreamAttempt): void {
    this.#streamError = error
    recordPartialResponse(this.#gateway, this.#exchange, attempt)
    const shares = this.#exchange.interruptedAttempts.flatMap(({ share }) => share ?? [])
    this.#priorUsage = () => shares.map(({ reported }) => reported.usage).reduce(addUsage, blankUsage())
  }

  /** The error event that the upstream sent in the stream, unchanged; null = none. */
  get upstreamErrorEvent(): string | null {
    const fault = this.#stage?.fault
    return fault?.kind === 'error' ? fault.bytes.toString('utf8') : null
  }
}

function recordPartialResponse({ accounts: { counter } }: Gateway, exchange: Exchange, attempt: UpstreamAttempt): void {
  const { prompt, meteredEndpoint: endpoint } = exchange
  const { metered, estimatedInput } = attempt
  if (metered === null) return
  attempt.share = createInterruptedUsage(counter, { endpoint, request: prompt, response: metered, estimatedInput })
}
