import { GatewayError } from '../../base/errors.ts'
import { isPaidByClient } from '../../upstreams/attempt.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { LedgerCheckpoint } from '../parts/ledger-checkpoint.ts'
import { NOT_DELIVERED, type Session, type SessionUsage, type UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import type { ActualUsage } from '../../limits/types.ts'
import { noCharge, settleUsage, type MeteredResponse, type SettleInput } from '../../pricing/settle-usage.ts'
import { settleCost, mergeCosts, provisionalCost, type SettledCost } from '../../pricing/settled-cost.ts'
import { priceFor } from '../../pricing/tier-price.ts'
import { CloseFrameDetector } from '../../protocols/events/close-frame-detector.ts'
import { readMessageInfo } from '../../protocols/endpoint/message-info.ts'
import type { Conversation, Endpoint, InputEstimate, SocketSession } from '../../protocols/endpoint/protocol.ts'
import type { ReportedUsage } from '../../protocols/usage/reported-usage.ts'
import { requestsBackground } from '../../protocols/usage/response-body.ts'
import { SocketMessages } from '../../protocols/events/socket-messages.ts'
import { StreamEvent } from '../../protocols/events/stream-event.ts'
import { blankUsage } from '../../protocols/usage/usage.ts'
import { Lanes, type PendingRequest } from './session-lanes.ts'
import type { SessionReservations } from './session-reservations.ts'

const RESPONSE_PREFIX = 'response.'

/**
 * Close codes by which an upstream reports a fault of the client: protocol error, unsupported type, malformed data, policy violation,
 * message too big.
 * Source: RFC 6455 section 7.4.1.
 */
const CLIENT_FAULT_CODES = new Set<number | null>([1002, 1003, 1007, 1008, 1009])

const UNKNOWN_COST: SettledCost = { usage: blankUsage(), source: 'none', billed: true, suspect: false, unread: true, costPico: null }

interface SettlementBasis {
  readonly response: MeteredResponse
  readonly request: PendingRequest | null
  /** null = unknown. */
  readonly estimate: InputEstimate | null
  readonly quoted: QuotedPrice | null
}

/**
 * Meters a WebSocket of the responses or the realtime protocol. Each response is metered and settled separately, at the price of the
 * response's model. Responses that run at the same time have separate lanes; each event names its lane.
 */
export class MeteredSession implements Session {
  knownUsage = { tokens: 0, pico: 0n }
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #target: UpstreamAttempt['target']
  /** The price of the last response that ended; before the first response ends, the price of the target's model. */
  #quoted: QuotedPrice | null
  readonly #session: SocketSession
  /** The endpoint for settlement: all responses are billed as text. */
  readonly #billedEndpoint: Endpoint
  readonly #upstreamMessages: SocketMessages
  /** null = the client's messages are not read, because the upstream's events contain everything that is billed. */
  readonly #clientMessages: SocketMessages | null
  /** Detects close frames as they arrive, because the messages before them may still have to be decompressed. */
  readonly #upstreamFrames = new CloseFrameDetector()
  readonly #clientFrames = new CloseFrameDetector()
  readonly #lanes: Lanes
  /** Ended responses whose tokens are being counted. */
  readonly #settlingParts = new Set<SettlementBasis>()
  /** The sum of the settled responses; null = no response is settled. */
  #total: SettledCost | null = null
  /** The model in the URL: `alias` as the client wrote it, `model` as the target names it. */
  readonly #urlModel: { readonly alias: string | null, readonly model: string | null }
  /** The model that the upstream named last. */
  #reportedModel: string | null = null
  /** The conversation of a realtime session; null = not a realtime session, so each request names its model. */
  readonly #conversation: Conversation | null
  #reading: Promise<unknown> | null = null
  #settling = Promise.resolve()
  #failed = false
  readonly #checkpoint: LedgerCheckpoint
  readonly #reservations: SessionReservations | null

  /** @param extensions in the handshake; null = none @param reservations null = the responses reserve nothing */
  constructor(
    gateway: Gateway, exchange: Exchange, { target, quoted }: UpstreamAttempt, session: SocketSession, extensions: string | null,
    reservations: SessionReservations | null = null,
  ) {
    this.#reservations = reservations
    this.#gateway = gateway
    this.#exchange = exchange
    this.#target = target
    this.#quoted = quoted
    const { request: { model: alias } } = exchange
    this.#urlModel = { alias, model: target.model ?? alias }
    this.#checkpoint = new LedgerCheckpoint(gateway, exchange)
    const reserveMemory = exchange.memory.reserveForResponse
    const { endpoint } = exchange.classified
    this.#session = session
    this.#conversation = session.createConversation?.() ?? null
    this.#billedEndpoint = { ...endpoint, metering: 'text' }
    this.#lanes = new Lanes(endpoint, session, reserveMemory)
    this.#upstreamMessages = new SocketMessages('server', extensions, reserveMemory, this.#guarded(message => {
      this.#onUpstreamMessage(message)
    }))
    const onClientMessage = this.#guarded(message => {
      if (this.#lanes.addRequest(message)) this.#checkpoint.schedule()
    })
    this.#clientMessages = this.#conversation ? null : new SocketMessages('client', extensions, reserveMemory, onClientMessage)
  }

  receiveFromUpstream(chunk: Buffer): void {
    this.#upstreamFrames.push(chunk)
    this.#upstreamMessages.push(chunk)
  }

  receiveFromClient(chunk: Buffer): void {
    // After the upstream's close frame the client sends only a close frame, which needs no reading.
    if (this.#upstreamFrames.closed) return
    this.#clientFrames.push(chunk)
    this.#clientMessages?.push(chunk)
  }

  async connectionClosed(endedBy: 'client' | 'upstream' | null): Promise<GatewayError | null> {
    await this.#readAll()
    // An upstream's message that cannot be read may have ended the open responses, so report no error.
    if (this.#upstreamMessages.unreadable || this.#lanes.openLanes.size === 0) return null
    // The side that sent the first close frame ended the session, even if the other side closes the connection first.
    const isClientGone = this.#clientFrames.closed || (endedBy === 'client' && !this.#upstreamFrames.closed)
    return isClientGone
      ? new GatewayError('client_gone', 'the client closed the connection')
      : new GatewayError('upstream_cut', 'the upstream closed the connection in the middle of a response')
  }

  get isClientFault(): boolean {
    return CLIENT_FAULT_CODES.has(this.#upstreamMessages.closeCode)
  }

  async end(failure: GatewayError | null): Promise<SessionUsage> {
    await this.#readAll()
    const end = failure?.code === 'client_gone' ? 'client_gone' : 'other'
    while (this.#lanes.openLanes.size > 0) for (const lane of this.#lanes.openLanes) this.#endLane(lane, end)
    await this.#settling
    const isUnknown = this.#upstreamMessages.unreadable || this.#failed
    this.#reservations?.close(isUnknown)
    if (isUnknown) this.#add(UNKNOWN_COST)
    return { ...this.#total ?? settleCost(noCharge(), null), quoted: this.#quoted, model: this.#modelSoFar }
  }

  unsettled(used: ActualUsage): ActualUsage {
    return this.#reservations?.unsettled(used) ?? used
  }

  usageSoFar(): SessionUsage | null {
    const parts = [...this.#settlingParts, ...[...this.#lanes.openLanes].map(lane => this.#settlementBasisOf(lane))]
    const estimates = parts.map(({ response, request, estimate, quoted }) => (
      provisionalCost(this.#billedEndpoint, response, estimate, quoted, request !== null && requestsBackground(request.body))
    ))
    const bills = this.#total === null ? estimates : [this.#total, ...estimates]
    if (bills.length === 0) return null
    return { ...mergeSessionCosts(bills), quoted: parts.at(-1)?.quoted ?? this.#quoted, model: this.#modelSoFar }
  }

  get #isPaidByClient(): boolean {
    return isPaidByClient(this.#target.upstream)
  }

  get #modelSoFar(): string | null {
    return this.#reportedModel ?? this.#conversation?.transcriptionModel ?? null
  }

  #readAll(): Promise<unknown> {
    return this.#reading ??= Promise.all([this.#clientMessages?.end(), this.#upstreamMessages.end()])
  }

  #guarded(read: (message: Buffer) => void): (message: Buffer) => void {
    return message => {
      try {
        read(message)
      } catch (error) {
        this.#fail(error)
      }
    }
  }

  #onUpstreamMessage(message: Buffer): void {
    const { type, model, lane: named } = readMessageInfo(message, this.#session)
    this.#reportedModel = model ?? this.#reportedModel
    const lane = this.#conversation ? this.#lanes.laneOfResponse(named) : this.#laneOf(type, named)
    const transcript = this.#conversation?.onMessage(type, message) ?? null
    if (transcript !== null) this.#addTranscript(transcript)
    if (!type.startsWith(RESPONSE_PREFIX)) return
    const underway = this.#lanes.begin(lane)
    underway.model = model ?? underway.model
    underway.meter.event(StreamEvent.of(message))
    if (underway.meter.terminated) this.#endLane(lane, 'complete')
    else this.#checkpoint.schedule()
  }

  /** @returns the lane of an event. An error event ends the response that is running in its lane */
  #laneOf(type: string, named: string): string {
    if (type !== 'error') return this.#lanes.laneOfEvent(named)
    const lane = this.#lanes.laneOfError(named)
    if (this.#lanes.openLanes.has(lane)) this.#endLane(lane, 'other')
    return lane
  }

  /** Adds the cost of transcribing the client's speech, at the price of the transcription model. */
  #addTranscript({ usage, suspect }: ReportedUsage): void {
    const model = this.#conversation?.transcriptionModel ?? null
    const quoted = model === null ? null : this.#priceOf(model, model)
    const isReported = Object.values(usage).some(count => count !== null)
    const source = isReported ? 'reported' : 'none'
    this.#add(settleCost({ usage, source, billed: true, suspect, unread: false }, quoted))
    this.#quoted ??= quoted
    this.#checkpoint.writeNow()
  }

  #settlementBasisOf(lane: string): SettlementBasis {
    const underway = this.#lanes.activeResponse(lane)
    const request = this.#lanes.pendingRequest(lane)
    const model = underway ? underway.model ?? this.#reportedModel : request?.model ?? null
    const requested = request && { inputTokens: request.estimatedInput, cachedInputTokens: null, inputAudioTokens: null }
    return {
      response: underway ? { kind: 'stream', meter: underway.meter } : NOT_DELIVERED,
      request,
      estimate: requested ?? (underway ? this.#conversation?.inputEstimate ?? null : null),
      quoted: this.#quote(model),
    }
  }

  /** Settles the running or requested response in the lane, if there is one. */
  #endLane(lane: string, end: SettleInput['end']): void {
    const part = this.#settlementBasisOf(lane)
    const { response, request: pending } = part
    // A response that has not begun is billed only if the client requested it and then disconnected.
    const held = this.#reservations?.take(lane) ?? null
    if (!this.#lanes.end(lane) && (pending === null || end !== 'client_gone')) {
      held?.reservation.release()
      return
    }
    const { counter } = this.#gateway.accounts
    const quoted = priceFor(part.quoted, response)
    this.#quoted = quoted
    const { abandoned } = this.#gateway.config.billing
    const request = pending?.body ?? null
    const estimate = request === null && end !== 'complete' ? part.estimate : null
    const input = { endpoint: this.#billedEndpoint, end, response, request, estimate, abandoned } as const
    this.#settlingParts.add(part)
    // Many responses can end at once: the token counter limits its queue, and estimates further requests by their bytes.
    const settling = Promise.try(settleUsage, input, counter).then(settled => {
      const bill = settleCost(settled, quoted)
      this.#settlingParts.delete(part)
      this.#add(bill)
      if (held !== null) this.#reservations?.settle(held, { ...usedBy(bill), ...this.#isPaidByClient && { pico: 0n } })
      this.#checkpoint.writeNow()
    }).catch((error: unknown) => {
      held?.reservation.settle({ tokens: null, pico: null })
      this.#fail(error)
    })
    this.#settling = Promise.all([this.#settling, settling]).then(() => undefined)
  }

  /** A realtime session is priced by the model in the URL, another session by the reported model. @param reported model of the response */
  #quote(reported: string | null): QuotedPrice | null {
    const { alias, model } = this.#urlModel
    const isOne = this.#conversation !== null
    const used = isOne ? model ?? reported : reported ?? model
    return used === null ? null : this.#priceOf(used, (isOne ? alias : null) ?? used)
  }

  #priceOf(model: string, alias: string): QuotedPrice | null {
    const { prices } = this.#gateway.accounts
    return prices.priceOf(this.#target.upstream.url, model, new Date(this.#exchange.startedWall), alias)
  }

  /** Handles an error in the metering by logging it, because the session must not end. */
  #fail(err: unknown): void {
    this.#failed = true
    this.#gateway.log.error({ ...this.#exchange.logIds, err }, 'the usage of a WebSocket message could not be read')
  }

  #add(bill: SettledCost): void {
    this.#total = mergeSessionCosts(this.#total === null ? [bill] : [this.#total, bill])
    const { usage: { inputTokens, outputTokens }, costPico } = bill
    this.knownUsage = {
      tokens: this.knownUsage.tokens + (inputTokens ?? 0) + (outputTokens ?? 0),
      pico: this.knownUsage.pico + (costPico ?? 0n),
    }
  }
}

/** @returns null values = unknown */
function usedBy({ usage: { inputTokens, outputTokens }, billed, unread, costPico }: SettledCost): ActualUsage {
  if (!billed) return { tokens: 0, pico: 0n }
  const isCounted = !unread && (inputTokens !== null || outputTokens !== null)
  return { tokens: isCounted ? (inputTokens ?? 0) + (outputTokens ?? 0) : null, pico: costPico }
}

function mergeSessionCosts(bills: readonly SettledCost[]): SettledCost {
  return mergeCosts(bills.map(bill => ({ record: undefined, bill })))
}
