import { isObject } from '../../base/is-object.ts'
import type { Edit } from '../json/splice.ts'
import type { EventContent } from './stream-event.ts'
import { tokensOfBytes } from '../usage/tokens-of-bytes.ts'
import type { Usage } from '../usage/usage.ts'

export type Json = Record<string, unknown>

/** How the gateway can repair the response to a client whose stream broke. */
export type Recovery =
  | { readonly can: 'continue' }
  /** The response is complete, but the protocol's end is missing: `rest` is that end. */
  | { readonly can: 'finish'; readonly rest: Buffer }
  | { readonly can: 'nothing'; readonly reason: string }

/** Usage of the responses before the continuing response, reported or estimated. */
export type PriorUsage = Readonly<Pick<
  Usage, 'inputTokens' | 'cachedInputTokens' | 'cacheWrite5mTokens' | 'cacheWrite1hTokens' | 'outputTokens'
>>

/** Translates an event of the continuing response for the client of the first response. The event is neither an error nor oversize. */
export type EventTranslator = (event: EventContent) => string

/** Knows how a protocol continues a response. Each request has its own object. */
export interface StreamProtocol {
  /** Reads an event that the client got. @returns why the response can no longer be continued; null = it can be continued */
  read(value: Json): string | null
  /** Why the response cannot be continued at this moment, such as an open thinking block; null = it can be continued. */
  readonly underWay: string | null
  /** true if the response is complete, even if the protocol's end is missing. */
  readonly finished: boolean
  /** Tells whether this event would complete the response, so that nothing is missing. */
  completes(value: Json): boolean
  /** What the client asked to get at the end of the response and has not received; null = nothing. */
  readonly missing: string | null
  /** The text with which the protocol ends a complete response; empty = none. */
  readonly endMarker: string
  /** Edits to the client's body, after which an upstream continues the text. @param spent tokens of the text */
  edits(body: Buffer, text: string, spent: number): Edit[]
  /** Starts to translate another response. @param before called when the usage is sent to the client */
  createTranslation(before: () => PriorUsage): EventTranslation
}

export interface EventTranslation {
  /** @returns the events that the client gets for this event. @param text removes text that the client already has */
  translate(value: Json, text: (part: string) => string): Json[]
  render(value: Json): string
}

/** Maximum characters of a response that is kept for continuation: to repeat a longer text in a request would cost too much. */
const MAX_TEXT_CHARS = 1024 * 1024
const DONE = '[DONE]'

/**
 * One streamed response that another upstream can continue. Records the events that the client gets, edits the request, and joins the
 * responses.
 */
export class ResumableStream {
  readonly #protocol: StreamProtocol
  readonly #textOf: (value: Json) => string
  #text = ''
  #done = false
  #obstacle: string | null = null

  constructor(dialect: StreamProtocol, textOf: (value: Json) => string) {
    this.#protocol = dialect
    this.#textOf = textOf
  }

  /** Records an event of the upstream that the client gets without changes. */
  recordSent({ text, value }: EventContent): void {
    if (text === DONE) this.#done = true
    else if (isObject(value)) this.#record(value)
    else if (text !== '') this.#obstacle ??= 'an event was no JSON object'
  }

  /** Records that the client gets an event that is too large to parse. */
  recordOversize(): void {
    this.#obstacle ??= 'an event was too large to look into'
  }

  /** Tells whether this event, which the client has not yet got, is the last event that the client needs. */
  isLastEvent({ value }: EventContent): boolean {
    return isObject(value) && this.#protocol.completes(value)
  }

  /** false = a request for the rest has no text to continue. */
  get hasText(): boolean {
    return this.#text.trimEnd() !== ''
  }

  get recovery(): Recovery {
    const { finished, missing, endMarker: ending } = this.#protocol
    if (finished && this.#done) return { can: 'finish', rest: Buffer.alloc(0) }
    if (finished && missing !== null) return { can: 'nothing', reason: `${missing} is missing` }
    if (finished) return { can: 'finish', rest: Buffer.from(ending) }
    const reason = this.#obstacle ?? this.#protocol.underWay
    return reason === null ? { can: 'continue' } : { can: 'nothing', reason }
  }

  /**
   * Edits that ask another upstream for the rest of the response. White space at the end of the text is removed, because Anthropic refuses
   * it.
   */
  edits(body: Buffer): Edit[] {
    const text = this.#text.trimEnd()
    return this.#protocol.edits(body, text, tokensOfBytes(Buffer.byteLength(text)))
  }

  /** Starts another response that continues the client's stream. @param before called when the usage is sent to the client */
  createTranslator(before: () => PriorUsage): EventTranslator {
    const joined = this.#protocol.createTranslation(before)
    const leading = new PrefixStripper(this.#text.slice(this.#text.trimEnd().length))
    return ({ text, value }) => {
      if (text === DONE) {
        const isFirst = !this.#done
        this.#done = true
        return isFirst ? `data: ${DONE}\n\n` : ''
      }
      if (!isObject(value)) return ''
      let out = ''
      for (const each of joined.translate(value, part => leading.strip(part))) {
        this.#record(each)
        out += joined.render(each)
      }
      return out
    }
  }

  #record(value: Json): void {
    // Read the event although the response cannot be continued: it may still become complete.
    const obstacle = this.#protocol.read(value)
    this.#obstacle ??= obstacle
    if (this.#obstacle !== null) {
      this.#text = ''
      return
    }
    this.#text += this.#textOf(value)
    if (this.#text.length > MAX_TEXT_CHARS) this.#obstacle = 'the response is too long'
  }
}

/**
 * The second upstream may repeat the white space that ends the client's text. Removes it from the beginning of a text that arrives in
 * parts.
 */
class PrefixStripper {
  #prefix: string

  constructor(has: string) {
    this.#prefix = has
  }

  strip(part: string): string {
    let same = 0
    while (same < part.length && same < this.#prefix.length && part[same] === this.#prefix[same]) same++
    this.#prefix = same === part.length ? this.#prefix.slice(same) : ''
    return part.slice(same)
  }
}

export function objectIn(value: Json, name: string): Json {
  const member = value[name]
  return isObject(member) ? member : {}
}

export function objectsIn(value: Json, name: string): Json[] {
  const member = value[name]
  return Array.isArray(member) ? member.filter(isObject) : []
}

export function hasValue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value)
}

type Counts = Readonly<Record<string, number | null>>

/**
 * Adds the usage of earlier responses to a usage.
 * @param counts each is added only if the usage has a member of that name
 * @param also each is added even if the usage has no member of that name
 */
export function addPriorUsage(usage: Json, counts: Counts, also: Counts = {}): Json {
  const sum: Json = { ...usage }
  for (const name of Object.keys(also)) sum[name] ??= 0
  for (const [name, more] of Object.entries({ ...counts, ...also })) {
    if (typeof sum[name] === 'number') sum[name] = (sum[name] as number) + (more ?? 0)
  }
  return sum
}
