import { GatewayError } from '../../base/errors.ts'
import type { Exchange, Session, SoFar } from '../../context/exchange.ts'
import { roomFor } from './observe.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { asksForBackground } from '../../protocols/response-body.ts'
import { Conversation } from '../../pricing/conversation.ts'
import type { InputEstimate } from '../../pricing/conversation.ts'
import { FrameHeads } from '../../protocols/shared/close-frame-detector.ts'
import { headingOf } from '../../protocols/shared/message-info.ts'
import { InputTranscripts } from '../../pricing/input-transcripts.ts'
import { SocketMessages } from '../../protocols/shared/socket-messages.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import type { Reading } from '../../protocols/shared/readers.ts'
import { settingsIn } from '../../protocols/media/realtime-event.ts'
import { free, settleUsage } from '../../pricing/settle-usage.ts'
import type { Answer, Bill, SettleInput } from '../../pricing/settle-usage.ts'
import { priceFor } from '../../pricing/tier-price.ts'
import { blankUsage } from '../../protocols/shared/usage.ts'
import type { Request } from './pending-requests.ts'
import { billFor, joinBills, provisionalBill } from '../settle/settled-cost.ts'
import { Lanes } from './lanes.ts'
import { News } from '../settle/ledger-checkpoint.ts'

const OF_RESPONSES = 'response.'
const BEFORE = Buffer.from('data: ')
const BEHIND = Buffer.from('\n\n')
const LINE_BREAKS = /[\r\n]/g

/**
 * With which the upstream hangs up for what the client has said: no WebSocket's, of a wrong kind, malformed,
 * against a policy, or too big. Source: RFC 6455 section 7.4.1.
 */
const BLAMING = new Set<number | null>([1002, 1003, 1007, 1008, 1009])

/** Nobody knows what was used. */
const UNKNOWN: Bill = {
  usage: blankUsage(), source: 'none', billed: true, suspect: false, unread: true, costPico: null,
}

/** What a response is settled by. */
interface Part {
  readonly answer: Answer
  readonly asked: Request | null
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
  known = { tokens: 0, pico: 0n }
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  /** What the upstream says. */
  readonly #heard: SocketMessages
  /** What the client says; null = of that the upstream tells as well, as far as it counts. */
  readonly #said: SocketMessages | null
  /** Their goodbyes, seen as they pass: what was said before may still be on its way out of zlib. */
  readonly #upstreamFrames = new FrameHeads()
  readonly #clientFrames = new FrameHeads()
  readonly #lanes: Lanes
  /** What has ended and is being counted. */
  readonly #counting = new Set<Part>()
  /** What the responses cost that have ended; null = there was none. */
  #bill: Bill | null = null
  /** The model as the client wrote it in the address, and as its target has it. */
  readonly #addressed: { readonly alias: string | null, readonly model: string | null }
  /** As the upstream has named it last. */
  #told: string | null = null
  readonly #transcripts = new InputTranscripts()
  readonly #conversation = new Conversation()
  #reading: Promise<unknown> | null = null
  #settling = Promise.resolve()
  #failed = false
  readonly #news: News

  /** @param extensions what the handshake agreed on */
  constructor(gateway: Gateway, exchange: Exchange, extensions: string | null) {
    this.#gateway = gateway
    this.#exchange = exchange
    const { model: alias, candidate } = exchange
    this.#addressed = { alias, model: candidate?.model ?? alias }
    this.#news = new News(gateway, exchange)
    const room = roomFor(gateway, exchange)
    const { name } = exchange.classified.endpoint
    this.#lanes = new Lanes(name, room)
    this.#heard = new SocketMessages('server', extensions, room, this.#guarded(message => {
      this.#hear(message)
    }))
    const ask = this.#guarded(message => {
      if (this.#lanes.ask(message)) this.#news.tell()
    })
    this.#said = name === 'responses' ? new SocketMessages('client', extensions, room, ask) : null
  }

  /** Takes the next bytes that the upstream says. */
  heard(chunk: Buffer): void {
    this.#upstreamFrames.push(chunk)
    this.#heard.push(chunk)
  }

  /** Takes the next bytes that the client says. */
  said(chunk: Buffer): void {
    // Behind the upstream's goodbye there is nothing but an answer to it.
    if (this.#upstreamFrames.concluded) return
    this.#clientFrames.push(chunk)
    this.#said?.push(chunk)
  }

  async broken(endedBy: 'client' | 'upstream' | null): Promise<GatewayError | null> {
    await this.#readAll()
    // What cannot be read may have ended all of it.
    if (this.#heard.lost || this.#lanes.open.size === 0) return null
    // Who answers a goodbye may be the first to hang up.
    const isLeft = this.#clientFrames.concluded
      || (endedBy === 'client' && !this.#upstreamFrames.concluded)
    return isLeft
      ? new GatewayError('client_gone', 'the client closed the connection')
      : new GatewayError('upstream_cut', 'the upstream closed the connection in mid-response')
  }

  get blamesClient(): boolean {
    return BLAMING.has(this.#heard.closeCode)
  }

  async end(failure: GatewayError | null): Promise<Bill> {
    await this.#readAll()
    const end = failure?.code === 'client_gone' ? 'client_gone' : 'other'
    while (this.#lanes.open.size > 0) for (const lane of this.#lanes.open) this.#endLane(lane, end)
    await this.#settling
    if (this.#heard.lost || this.#failed) this.#add(UNKNOWN)
    this.#exchange.model ??= this.#told ?? this.#transcripts.model
    return this.#bill ?? billFor(free(), null)
  }

  soFar(): SoFar | null {
    const parts = [...this.#counting, ...[...this.#lanes.open].map(lane => this.#partOf(lane))]
    const roughly = parts.map(({ answer, asked, estimate, quoted }) => (
      provisionalBill(answer, estimate, quoted, asked !== null && asksForBackground(asked.body))
    ))
    const bills = this.#bill === null ? roughly : [this.#bill, ...roughly]
    if (bills.length === 0) return null
    return {
      ...join(bills),
      quoted: parts.at(-1)?.quoted ?? this.#exchange.quoted,
      model: this.#told ?? this.#transcripts.model,
    }
  }

  #readAll(): Promise<unknown> {
    return this.#reading ??= Promise.all([this.#said?.end(), this.#heard.end()])
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

  #hear(message: Buffer): void {
    const isRealtime = this.#exchange.classified.endpoint.name === 'realtime'
    const { type, model, lane: named } = headingOf(message, isRealtime ? 'realtime' : 'responses')
    this.#told = model ?? this.#told
    const lane = isRealtime ? this.#lanes.ofResponse(named) : this.#laneOf(type, named)
    if (isRealtime) this.#hearSession(type, message)
    if (!type.startsWith(OF_RESPONSES)) return
    const underway = this.#lanes.begin(lane)
    underway.model = model ?? underway.model
    // A line break is white space in JSON, and the end of a line of a stream.
    const isOneLine = !message.includes(0x0a) && !message.includes(0x0d)
    const line = isOneLine ? message : Buffer.from(message.toString('utf8').replace(LINE_BREAKS, ' '))
    underway.meter.push(Buffer.concat([BEFORE, line, BEHIND]))
    if (underway.meter.terminated) this.#endLane(lane, 'complete')
    else this.#news.tell()
  }

  /** What a realtime session's events tell beside its responses. */
  #hearSession(type: string, message: Buffer): void {
    const settings = settingsIn(type, message)
    if (settings !== null) {
      this.#transcripts.set(settings)
      this.#conversation.set(settings)
      return
    }
    const transcript = this.#transcripts.read(type, message)
    if (transcript !== null) this.#addTranscript(transcript)
    this.#conversation.read(type, message)
  }

  /** The lane of an event of the responses protocol, where an error ends what was under way. */
  #laneOf(type: string, named: string): string {
    if (type !== 'error') return this.#lanes.of(named)
    const lane = this.#lanes.ofError(named)
    if (this.#lanes.open.has(lane)) this.#endLane(lane, 'other')
    return lane
  }

  /** What the client said was put into words: at the price of the model that does that. */
  #addTranscript({ usage, suspect }: Reading): void {
    const { model } = this.#transcripts
    const quoted = model === null ? null : this.#priceOf(model, model)
    const isTold = Object.values(usage).some(count => count !== null)
    const source = isTold ? 'reported' : 'none'
    this.#add(billFor({ usage, source, billed: true, suspect, unread: false }, quoted))
    this.#exchange.quoted ??= quoted
    this.#news.draft()
  }

  /** What is to be settled of the lane as it stands. */
  #partOf(lane: string): Part {
    const underway = this.#lanes.underway(lane)
    const asked = this.#lanes.asked(lane)
    const model = underway ? underway.model ?? this.#told : asked?.model ?? null
    return {
      answer: underway ? { kind: 'stream', meter: underway.meter } : { kind: 'none', delivered: false },
      asked,
      estimate: asked ? estimateOf(asked) : underway ? this.#conversation.input : null,
      quoted: this.#quote(model),
    }
  }

  /** Settles the response that is under way there, or was asked for, if there is one. */
  #endLane(lane: string, end: SettleInput['end']): void {
    const part = this.#partOf(lane)
    const { answer, asked } = part
    // What was refused, or never began, costs only who did not wait for it.
    if (!this.#lanes.end(lane) && (asked === null || end !== 'client_gone')) return
    const { counter } = this.#gateway.accounts
    const exchange = this.#exchange
    const quoted = priceFor(part.quoted, answer)
    exchange.quoted = quoted
    // As the responses protocol is, whose events a realtime session's are.
    const { abandoned } = this.#gateway.config.billing
    const request = asked?.body ?? null
    const estimate = request === null && end !== 'complete' ? part.estimate : null
    const input = { endpoint: 'responses', end, answer, request, estimate, abandoned } as const
    this.#counting.add(part)
    // All at once: the counter bounds what waits there, and counts the rest by bytes.
    const settling = Promise.try(settleUsage, input, counter).then(settled => {
      this.#counting.delete(part)
      this.#add(billFor(settled, quoted))
      this.#news.draft()
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
    const { classified } = this.#exchange
    const { alias, model } = this.#addressed
    const isOne = classified.endpoint.name === 'realtime'
    const used = isOne ? model ?? told : told ?? model
    return used === null ? null : this.#priceOf(used, (isOne ? alias : null) ?? used)
  }

  #priceOf(model: string, alias: string): QuotedPrice | null {
    const { candidate, startedWall } = this.#exchange
    if (candidate === null) return null
    const { prices } = this.#gateway.accounts
    return prices.priceOf(candidate.upstream.url, model, new Date(startedWall), alias)
  }

  /** A fault of our own is no reason to end what two others say to each other. */
  #fail(err: unknown): void {
    this.#failed = true
    this.#gateway.log.error({ request: this.#exchange.id, err }, 'what a WebSocket said could not be metered')
  }

  #add(bill: Bill): void {
    this.#bill = join(this.#bill === null ? [bill] : [this.#bill, bill])
    const { usage: { inputTokens, outputTokens }, costPico } = bill
    this.known = {
      tokens: this.known.tokens + (inputTokens ?? 0) + (outputTokens ?? 0),
      pico: this.known.pico + (costPico ?? 0n),
    }
  }
}

function join(bills: readonly Bill[]): Bill {
  return joinBills(bills.map(bill => ({ record: undefined, bill })))
}

function estimateOf({ estimatedInput: inputTokens }: Request): InputEstimate {
  return { inputTokens, cachedInputTokens: null, inputAudioTokens: null }
}
