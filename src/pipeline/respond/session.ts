import { GatewayError } from '../../base/errors.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { LedgerCheckpoint } from '../../context/ledger-checkpoint.ts'
import { NOT_DELIVERED } from '../../context/upstream-attempt.ts'
import type { Session, SessionUsage, UpstreamAttempt } from '../../context/upstream-attempt.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import { noCharge, settleUsage } from '../../pricing/settle-usage.ts'
import type { MeteredResponse, SettledCost, SettleInput } from '../../pricing/settle-usage.ts'
import { settleCost, mergeCosts, provisionalCost } from '../../pricing/settled-cost.ts'
import { priceFor } from '../../pricing/tier-price.ts'
import { CloseFrameDetector } from '../../protocols/shared/close-frame-detector.ts'
import { readMessageInfo } from '../../protocols/shared/message-info.ts'
import type { Conversation, Endpoint, InputEstimate, SocketSession } from '../../protocols/shared/protocol.ts'
import type { ReportedUsage } from '../../protocols/shared/reported-usage.ts'
import { requestsBackground } from '../../protocols/shared/response-body.ts'
import { SocketMessages } from '../../protocols/shared/socket-messages.ts'
import { StreamEvent } from '../../protocols/shared/stream-event.ts'
import { blankUsage } from '../../protocols/shared/usage.ts'
import { Lanes } from './lanes.ts'
import type { PendingRequest } from './pending-requests.ts'
import { responseMemoryFor } from './response-memory.ts'

const RESPONSE_PREFIX = 'response.'

/**
 * With which the upstream hangs up for what the client has said: no WebSocket's, of a wrong kind, malformed,
 * against a policy, or too big. Source: RFC 6455 section 7.4.1.
 */
const CLIENT_FAULT_CODES = new Set<number | null>([1002, 1003, 1007, 1008, 1009])

/** Nobody knows what was used. */
const UNKNOWN_COST: SettledCost = {
  usage: blankUsage(), source: 'none', billed: true, suspect: false, unread: true, costPico: null,
}

/** What a response is settled by. */
interface SettlementBasis {
  readonly response: MeteredResponse
  readonly request: PendingRequest | null
  /** Of what it reads; null = nobody tells. */
  readonly estimate: InputEstimate | null
  readonly quoted: QuotedPrice | null
}

/**
 * What is used over a WebSocket of the responses or the realtime protocol. Each
 * response that the upstream makes there has the events of a stream, is metered
 * and settled like one, and priced by the model that it says. Where the client
 * asks for several at once, each has a lane, which its events name.
 */
export class MeteredSession implements Session {
  knownUsage = { tokens: 0, pico: 0n }
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #target: UpstreamAttempt['target']
  /** The price of the response that ended last; before, that of the target's model. */
  #quoted: QuotedPrice | null
  readonly #session: SocketSession
  /** Each response is billed as text, whatever the endpoint is. */
  readonly #billedEndpoint: Endpoint
  /** What the upstream says. */
  readonly #upstreamMessages: SocketMessages
  /** What the client says; null = of that the upstream tells as well, as far as it counts. */
  readonly #clientMessages: SocketMessages | null
  /** Their goodbyes, seen as they pass: what was said before may still be on its way out of zlib. */
  readonly #upstreamFrames = new CloseFrameDetector()
  readonly #clientFrames = new CloseFrameDetector()
  readonly #lanes: Lanes
  /** What has ended and is being counted. */
  readonly #settlingParts = new Set<SettlementBasis>()
  /** What the responses cost that have ended; null = there was none. */
  #total: SettledCost | null = null
  /** The model as the client wrote it in the address, and as its target has it. */
  readonly #urlModel: { readonly alias: string | null, readonly model: string | null }
  /** As the upstream has named it last. */
  #reportedModel: string | null = null
  /** null = each request names its model. */
  readonly #conversation: Conversation | null
  #reading: Promise<unknown> | null = null
  #settling = Promise.resolve()
  #failed = false
  readonly #checkpoint: LedgerCheckpoint

  /** @param extensions what the handshake agreed on */
  constructor(
    gateway: Gateway, exchange: Exchange, { target, quoted }: UpstreamAttempt, session: SocketSession, extensions: string | null,
  ) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#target = target
    this.#quoted = quoted
    const { request: { model: alias } } = exchange
    this.#urlModel = { alias, model: target.model ?? alias }
    this.#checkpoint = new LedgerCheckpoint(gateway, exchange)
    const room = responseMemoryFor(gateway, exchange)
    const { endpoint } = exchange.classified
    this.#session = session
    this.#conversation = session.createConversation?.() ?? null
    this.#billedEndpoint = { ...endpoint, metering: 'text' }
    this.#lanes = new Lanes(endpoint, session, room)
    this.#upstreamMessages = new SocketMessages('server', extensions, room, this.#guarded(message => {
      this.#onUpstreamMessage(message)
    }))
    const ask = this.#guarded(message => {
      if (this.#lanes.addRequest(message)) this.#checkpoint.schedule()
    })
    this.#clientMessages = this.#conversation ? null : new SocketMessages('client', extensions, room, ask)
  }

  /** Takes the next bytes that the upstream says. */
  receiveFromUpstream(chunk: Buffer): void {
    this.#upstreamFrames.push(chunk)
    this.#upstreamMessages.push(chunk)
  }

  /** Takes the next bytes that the client says. */
  receiveFromClient(chunk: Buffer): void {
    // Behind the upstream's goodbye there is nothing but an answer to it.
    if (this.#upstreamFrames.closed) return
    this.#clientFrames.push(chunk)
    this.#clientMessages?.push(chunk)
  }

  async connectionClosed(endedBy: 'client' | 'upstream' | null): Promise<GatewayError | null> {
    await this.#readAll()
    // What cannot be read may have ended all of it.
    if (this.#upstreamMessages.unreadable || this.#lanes.openLanes.size === 0) return null
    // Who answers a goodbye may be the first to hang up.
    const isLeft = this.#clientFrames.closed
      || (endedBy === 'client' && !this.#upstreamFrames.closed)
    return isLeft
      ? new GatewayError('client_gone', 'the client closed the connection')
      : new GatewayError('upstream_cut', 'the upstream closed the connection in mid-response')
  }

  get isClientFault(): boolean {
    return CLIENT_FAULT_CODES.has(this.#upstreamMessages.closeCode)
  }

  async end(failure: GatewayError | null): Promise<SessionUsage> {
    await this.#readAll()
    const end = failure?.code === 'client_gone' ? 'client_gone' : 'other'
    while (this.#lanes.openLanes.size > 0) for (const lane of this.#lanes.openLanes) this.#endLane(lane, end)
    await this.#settling
    if (this.#upstreamMessages.unreadable || this.#failed) this.#add(UNKNOWN_COST)
    return { ...this.#total ?? settleCost(noCharge(), null), quoted: this.#quoted, model: this.#modelSoFar }
  }

  usageSoFar(): SessionUsage | null {
    const parts = [...this.#settlingParts, ...[...this.#lanes.openLanes].map(lane => this.#settlementBasisOf(lane))]
    const roughly = parts.map(({ response: answer, request: asked, estimate, quoted }) => (
      provisionalCost(this.#billedEndpoint, answer, estimate, quoted, asked !== null && requestsBackground(asked.body))
    ))
    const bills = this.#total === null ? roughly : [this.#total, ...roughly]
    if (bills.length === 0) return null
    return {
      ...mergeSessionCosts(bills),
      quoted: parts.at(-1)?.quoted ?? this.#quoted,
      model: this.#modelSoFar,
    }
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

  /** The lane of an event of the responses protocol, where an error ends what was under way. */
  #laneOf(type: string, named: string): string {
    if (type !== 'error') return this.#lanes.laneOfEvent(named)
    const lane = this.#lanes.laneOfError(named)
    if (this.#lanes.openLanes.has(lane)) this.#endLane(lane, 'other')
    return lane
  }

  /** What the client said was put into words: at the price of the model that does that. */
  #addTranscript({ usage, suspect }: ReportedUsage): void {
    const model = this.#conversation?.transcriptionModel ?? null
    const quoted = model === null ? null : this.#priceOf(model, model)
    const isTold = Object.values(usage).some(count => count !== null)
    const source = isTold ? 'reported' : 'none'
    this.#add(settleCost({ usage, source, billed: true, suspect, unread: false }, quoted))
    this.#quoted ??= quoted
    this.#checkpoint.writeNow()
  }

  /** What is to be settled of the lane as it stands. */
  #settlementBasisOf(lane: string): SettlementBasis {
    const underway = this.#lanes.activeResponse(lane)
    const asked = this.#lanes.pendingRequest(lane)
    const model = underway ? underway.model ?? this.#reportedModel : asked?.model ?? null
    return {
      response: underway ? { kind: 'stream', meter: underway.meter } : NOT_DELIVERED,
      request: asked,
      estimate: asked ? estimateOf(asked) : underway ? this.#conversation?.inputEstimate ?? null : null,
      quoted: this.#quote(model),
    }
  }

  /** Settles the response that is under way there, or was asked for, if there is one. */
  #endLane(lane: string, end: SettleInput['end']): void {
    const part = this.#settlementBasisOf(lane)
    const { response: answer, request: asked } = part
    // What was refused, or never began, costs only who did not wait for it.
    if (!this.#lanes.end(lane) && (asked === null || end !== 'client_gone')) return
    const { counter } = this.#gateway.accounts
    const quoted = priceFor(part.quoted, answer)
    this.#quoted = quoted
    const { abandoned } = this.#gateway.config.billing
    const request = asked?.body ?? null
    const estimate = request === null && end !== 'complete' ? part.estimate : null
    const input = { endpoint: this.#billedEndpoint, end, answer, request, estimate, abandoned } as const
    this.#settlingParts.add(part)
    // All at once: the counter bounds what waits there, and counts the rest by bytes.
    const settling = Promise.try(settleUsage, input, counter).then(settled => {
      this.#settlingParts.delete(part)
      this.#add(settleCost(settled, quoted))
      this.#checkpoint.writeNow()
    }).catch((error: unknown) => this.#fail(error))
    this.#settling = Promise.all([this.#settling, settling]).then(() => undefined)
  }

  /**
   * The price of a response. What is asked inside decides, whatever the address says;
   * a realtime session has one model, by whose address it is known.
   *
   * @param told the model as the upstream has named it
   */
  #quote(told: string | null): QuotedPrice | null {
    const { alias, model } = this.#urlModel
    const isOne = this.#conversation !== null
    const used = isOne ? model ?? told : told ?? model
    return used === null ? null : this.#priceOf(used, (isOne ? alias : null) ?? used)
  }

  #priceOf(model: string, alias: string): QuotedPrice | null {
    const { prices } = this.#gateway.accounts
    return prices.priceOf(this.#target.upstream.url, model, new Date(this.#exchange.startedWall), alias)
  }

  /** A fault of our own is no reason to end what two others say to each other. */
  #fail(err: unknown): void {
    this.#failed = true
    this.#gateway.log.error({ request: this.#exchange.id, err }, 'what a WebSocket said could not be metered')
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

function mergeSessionCosts(bills: readonly SettledCost[]): SettledCost {
  return mergeCosts(bills.map(bill => ({ record: undefined, bill })))
}

function estimateOf({ estimatedInput: inputTokens }: PendingRequest): InputEstimate {
  return { inputTokens, cachedInputTokens: null, inputAudioTokens: null }
}
