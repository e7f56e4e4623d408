import { isObject } from '../../base/is-object.ts'
import { PrefixStripper } from './prefix-stripper.ts'
import type { Edit } from '../json/splice.ts'
import type { EventContent } from './stream-event.ts'
import { tokensOfBytes } from '../usage/tokens-of-bytes.ts'
import type { Usage } from '../usage/usage.ts'

/** A JSON object, of which nothing is known yet. */
export type Json = Record<string, unknown>

/** What can be done for a client whose stream broke. */
export type Recovery =
  /** Another upstream can be asked for the rest. */
  | { readonly can: 'continue' }
  /** All was said, and only the protocol's end is missing: these bytes. */
  | { readonly can: 'finish'; readonly rest: Buffer }
  /** Nothing, for the reason given. */
  | { readonly can: 'nothing'; readonly reason: string }

/** What the responses before the one that is joined have used, reported or counted. */
export type PriorUsage = Readonly<Pick<
  Usage, 'inputTokens' | 'cachedInputTokens' | 'cacheWrite5mTokens' | 'cacheWrite1hTokens' | 'outputTokens'
>>

/**
 * Turns an event of a response that continues another into what the same client gets for it.
 *
 * @param event not an error, and not oversize
 */
export type EventTranslator = (event: EventContent) => string

/** What a protocol has to know to be continued; one for each request. */
export interface StreamProtocol {
  /**
   * Takes in an event that the client got.
   * @returns why the response cannot be continued from here on; null = it can
   */
  read(value: Json): string | null
  /** What is in progress that cannot be continued before it is whole; null = nothing. */
  readonly underWay: string | null
  /** Everything was said, whether or not the protocol's end was. */
  readonly finished: boolean
  /** Would everything be said, and nothing missing, with this event? */
  completes(value: Json): boolean
  /** What the client asked for behind all that is said, and has not got; null = nothing. */
  readonly missing: string | null
  /** The end of the protocol that is missing once all was said; empty where it has none. */
  readonly endMarker: string
  /** Edits to the client's body by which an upstream goes on behind the text. @param spent tokens of it */
  edits(body: Buffer, text: string, spent: number): Edit[]
  /**
   * Begins to translate another response.
   *
   * @param before called when the usage is sent to the client
   */
  createTranslation(before: () => PriorUsage): EventTranslation
}

export interface EventTranslation {
  /**
   * @param text takes off what the client has already of a text
   * @returns the events that the client gets for this one
   */
  translate(value: Json, text: (part: string) => string): Json[]
  /** How an event is written. */
  render(value: Json): string
}

/** Characters that are kept; of a longer answer nobody would read the rest twice. */
const MAX_TEXT_CHARS = 1024 * 1024
const DONE = '[DONE]'

/**
 * One streamed answer that another upstream could go on with: it watches what the
 * client gets, and knows how to ask for the rest and how to join it.
 */
export class ResumableStream {
  readonly #protocol: StreamProtocol
  readonly #textOf: (value: Json) => string
  #text = ''
  #done = false
  #obstacle: string | null = null

  /** @param textOf the text that an event adds to the response */
  constructor(dialect: StreamProtocol, textOf: (value: Json) => string) {
    this.#protocol = dialect
    this.#textOf = textOf
  }

  /** The client gets this event, as an upstream sent it. */
  recordSent({ text, value }: EventContent): void {
    if (text === DONE) this.#done = true
    else if (isObject(value)) this.#record(value)
    else if (text !== '') this.#obstacle ??= 'an event was no JSON object'
  }

  /** The client gets an event that is too large to be read. */
  recordOversize(): void {
    this.#obstacle ??= 'an event was too large to look into'
  }

  /** Is an event that the client has not got the last that it has to get? */
  isLastEvent({ value }: EventContent): boolean {
    return isObject(value) && this.#protocol.completes(value)
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
   * Edits to the client's body that ask another upstream for the rest: the text so
   * far stands in it as the last message of the assistant, and the tokens that it
   * took are taken off the limit that the client set. Its trailing white space is
   * left out, because Anthropic refuses it.
   */
  edits(body: Buffer): Edit[] {
    const text = this.#text.trimEnd()
    return this.#protocol.edits(body, text, tokensOfBytes(Buffer.byteLength(text)))
  }

  /**
   * Another response begins, which goes on where the client's stream stands.
   *
   * @param before called when the usage is sent to the client
   */
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
    // Also behind an obstacle: all may have been said in spite of it.
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

/** The member of that name if it is an object, or an empty one. */
export function objectIn(value: Json, name: string): Json {
  const member = value[name]
  return isObject(member) ? member : {}
}

/** The member of that name if it is a list, as far as its elements are objects. */
export function objectsIn(value: Json, name: string): Json[] {
  const member = value[name]
  return Array.isArray(member) ? member.filter(isObject) : []
}

/** Neither absent nor null, false, zero nor empty. */
export function hasValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return Boolean(value)
}

type Counts = Readonly<Record<string, number | null>>

/**
 * The usage with the counts of what came before added.
 *
 * @param counts added where it has them
 * @param also added, and told where it tells nothing of them
 */
export function addPriorUsage(usage: Json, counts: Counts, also: Counts = {}): Json {
  const sum: Json = { ...usage }
  for (const name of Object.keys(also)) sum[name] ??= 0
  for (const [name, more] of Object.entries({ ...counts, ...also })) {
    if (typeof sum[name] === 'number') sum[name] = (sum[name] as number) + (more ?? 0)
  }
  return sum
}
