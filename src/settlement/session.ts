import type { Exchange, Session } from '../exchange.ts'
import { roomFor } from '../forwarding/observe.ts'
import type { Gateway } from '../gateway.ts'
import { JsonCursor } from '../metering/cursor.ts'
import { InputTranscripts } from '../metering/input-transcripts.ts'
import { SocketMessages } from '../metering/messages-of-socket.ts'
import type { QuotedPrice } from '../metering/prices.ts'
import type { Reading } from '../metering/readers.ts'
import { free, settleUsage } from '../metering/settle.ts'
import type { Bill } from '../metering/settle.ts'
import { createStreamMeter } from '../metering/stream-meter.ts'
import type { StreamMeter } from '../metering/stream-meter.ts'
import { priceFor } from '../metering/tier-price.ts'
import { blankUsage } from '../metering/usage.ts'
import type { EndpointName } from '../protocols/names.ts'
import { billFor, joinBills } from './bill.ts'

const TYPE = Buffer.from('type')
const MODEL = Buffer.from('model')
const LANE = Buffer.from('stream_id')
const HOLDERS = [Buffer.from('response'), Buffer.from('session')]
const OF_RESPONSES = 'response.'
const BEFORE = Buffer.from('data: ')
const BEHIND = Buffer.from('\n\n')
const LINE_BREAKS = /[\r\n]/g
/** A longer one is nobody's: neither a model's nor a lane's. */
const LONGEST_NAME = 256

/** More responses at once than anybody makes: those beyond are taken for one. */
const MOST_LANES = 256
/** Bytes of text that each keeps in case it breaks off; longer ones are counted by that sample. */
const KEPT_OF_LANE = 16 * 1024

/** Nobody knows what was used. */
const UNKNOWN: Bill = {
  usage: blankUsage(), source: 'none', billed: true, suspect: false, unread: true, costPico: null,
}

/** A response that is under way. */
interface Underway {
  readonly meter: StreamMeter
  /** As the upstream has named it; null = it has not. */
  model: string | null
}

/**
 * What is used over a WebSocket of the responses or the realtime protocol. Each
 * response that the upstream makes there has the events of a stream, is metered
 * and settled like one, and priced by the model that it says. Where the client
 * asks for several at once, each has a lane, which its events name.
 *
 * Source: OpenAI's API reference, "WebSocket events", `stream_id`.
 */
export class MeteredSession implements Session {
  /** What the responses cost that have ended; null = there was none. */
  bill: Bill | null = null
  known = { tokens: 0, pico: 0n }
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #messages: SocketMessages
  /** By their lanes; the one without a name is ''. */
  readonly #underway = new Map<string, Underway>()
  /** As the client wrote it in the address, and as its target has it. */
  readonly #asked: { readonly alias: string | null, readonly model: string | null }
  /** As the upstream has named it last. */
  #told: string | null = null
  readonly #transcripts = new InputTranscripts()
  #settling = Promise.resolve()
  #failed = false

  /** @param extensions what the handshake agreed on */
  constructor(gateway: Gateway, exchange: Exchange, extensions: string | null) {
    this.#gateway = gateway
    this.#exchange = exchange
    const { model: alias, candidate } = exchange
    this.#asked = { alias, model: candidate?.model ?? alias }
    this.#messages = new SocketMessages(extensions, roomFor(gateway, exchange), message => {
      try {
        this.#read(message)
      } catch (error) {
        this.#fail(error)
      }
    })
  }

  /** Takes the next bytes that the upstream says. */
  push(chunk: Buffer): void {
    this.#messages.push(chunk)
  }

  /** No more will come. @returns what all of it costs */
  async end(): Promise<Bill> {
    await this.#messages.end()
    for (const lane of this.#underway.keys()) this.#endLane(lane, 'other')
    await this.#settling
    if (this.#messages.lost || this.#failed) this.#add(UNKNOWN)
    this.#exchange.model ??= this.#told ?? this.#transcripts.model
    return this.bill ?? billFor(free(), null)
  }

  #read(message: Buffer): void {
    const { type, model, lane: named } = headingOf(message)
    this.#told = model ?? this.#told
    const { name } = this.#exchange.classified.endpoint
    const lane = this.#underway.has(named) || this.#underway.size < MOST_LANES ? named : ''
    if (type === 'error' && name === 'responses') this.#endLane(lane, 'other')
    const transcript = name === 'realtime' ? this.#transcripts.read(type, message) : null
    if (transcript !== null) this.#addTranscript(transcript)
    if (!type.startsWith(OF_RESPONSES)) return
    const underway = this.#underway.get(lane) ?? { meter: meterOf(name, lane), model: null }
    this.#underway.set(lane, underway)
    underway.model = model ?? underway.model
    // A line break is white space in JSON, and the end of a line of a stream.
    const isOneLine = !message.includes(0x0a) && !message.includes(0x0d)
    const line = isOneLine ? message : Buffer.from(message.toString('utf8').replace(LINE_BREAKS, ' '))
    underway.meter.push(Buffer.concat([BEFORE, line, BEHIND]))
    if (underway.meter.terminated) this.#endLane(lane, 'complete')
  }

  /** What the client said was put into words: at the price of the model that does that. */
  #addTranscript({ usage, suspect }: Reading): void {
    const { model } = this.#transcripts
    const quoted = model === null ? null : this.#priceOf(model, model)
    const isTold = Object.values(usage).some(count => count !== null)
    const source = isTold ? 'reported' : 'none'
    this.#add(billFor({ usage, source, billed: true, suspect, unread: false }, quoted))
    this.#exchange.quoted ??= quoted
    this.#draft()
  }

  /** Settles the response that is under way there, if there is one. */
  #endLane(lane: string, end: 'complete' | 'other'): void {
    const underway = this.#underway.get(lane)
    if (underway === undefined) return
    this.#underway.delete(lane)
    const { meter, model } = underway
    const answer = { kind: 'stream', meter } as const
    const { counter } = this.#gateway.accounts
    const exchange = this.#exchange
    const quoted = priceFor(this.#quote(model ?? this.#told), answer)
    exchange.quoted = quoted
    // As the responses protocol is, whose events a realtime session's are.
    const input = { endpoint: 'responses', end, answer, request: null, abandoned: 'none' } as const
    // All at once: the counter bounds what waits there, and counts the rest by bytes.
    const part = Promise.try(settleUsage, input, counter).then(settled => {
      this.#add(billFor(settled, quoted))
      this.#draft()
    }).catch((error: unknown) => this.#fail(error))
    this.#settling = Promise.all([this.#settling, part]).then(() => undefined)
  }

  #draft(): void {
    const { entry } = this.#exchange
    if (entry) this.#gateway.accounts.ledger?.progress(entry)
  }

  /**
   * The price of a response. What is asked inside decides, whatever the address says;
   * a realtime session has one model, by whose address it is known.
   *
   * @param told the model as the upstream has named it
   */
  #quote(told: string | null): QuotedPrice | null {
    const { classified } = this.#exchange
    const { alias, model } = this.#asked
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
    const both = this.bill === null ? [bill] : [this.bill, bill]
    this.bill = joinBills(both.map(bill => ({ record: undefined, bill })))
    const { usage: { inputTokens, outputTokens }, costPico } = bill
    this.known = {
      tokens: this.known.tokens + (inputTokens ?? 0) + (outputTokens ?? 0),
      pico: this.known.pico + (costPico ?? 0n),
    }
  }
}

function meterOf(endpoint: EndpointName, lane: string): StreamMeter {
  return createStreamMeter(endpoint, lane === '' ? {} : { keep: KEPT_OF_LANE })
}

/** What an event tells of itself. */
interface Heading {
  readonly type: string
  /** The model that it names; null = none. */
  readonly model: string | null
  /** '' = it names none. */
  readonly lane: string
}

function headingOf(message: Buffer): Heading {
  const cursor = new JsonCursor(message)
  let type = ''
  let model: string | null = null
  let lane = ''
  if (!cursor.beginObject()) return { type, model, lane }
  while (cursor.nextMember()) {
    const isType = cursor.keyIs(TYPE)
    const isLane = cursor.keyIs(LANE)
    if (HOLDERS.some(name => cursor.keyIs(name)) && cursor.isObject()) model = modelIn(cursor) ?? model
    else if (isType && cursor.isString()) type = textAt(cursor)
    else if (isLane && cursor.isString()) lane = nameAt(cursor) ?? ''
    else cursor.skip()
  }
  return { type, model, lane }
}

/** Of the object that the cursor is at, which is passed. */
function modelIn(cursor: JsonCursor): string | null {
  let model: string | null = null
  cursor.beginObject()
  while (cursor.nextMember()) {
    const isModel = cursor.keyIs(MODEL) && cursor.isString()
    if (isModel) model = nameAt(cursor)
    else cursor.skip()
  }
  return model
}

/** null: too long for one. */
function nameAt(cursor: JsonCursor): string | null {
  const name = textAt(cursor)
  return name.length > LONGEST_NAME ? null : name
}

function textAt(cursor: JsonCursor): string {
  return cursor.skip() ? String(cursor.parsed()) : ''
}
