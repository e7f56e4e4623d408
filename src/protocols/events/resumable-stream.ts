import { isObject } from '../../base/is-object.ts'
import type { Edit } from '../json/splice.ts'
import type { EventContent } from './stream-event.ts'
import { tokensOfBytes } from '../usage/tokens-of-bytes.ts'
import type { Usage } from '../usage/usage.ts'

export type Json = Record<string, unknown>

/** What the gateway can do for a client whose stream broke. */
export type Recovery =
  | { readonly can: 'continue' }
  /** The response is complete, and only the protocol's end is missing: `rest`. */
  | { readonly can: 'finish'; readonly rest: Buffer }
  | { readonly can: 'nothing'; readonly reason: string }

/** Reported or counted usage of the responses before the continuing one. */
export type PriorUsage = Readonly<Pick<
  Usage, 'inputTokens' | 'cachedInputTokens' | 'cacheWrite5mTokens' | 'cacheWrite1hTokens' | 'outputTokens'
>>

/** Translates an event, neither an error nor oversize, of the continuing response for the client of the first response. */
export type EventTranslator = (event: EventContent) => string

/** How to continue a response of one protocol; one object per request. */
export interface StreamProtocol {
  /** Reads an event that the client got. @returns why the response cannot be continued any more; null = it can */
  read(value: Json): string | null
  /** Why the response cannot be continued yet, such as an open thinking block; null = it can. */
  readonly underWay: string | null
  /** The response is complete, even if the protocol's end is missing. */
  readonly finished: boolean
  /** Would this event complete the response, with nothing missing? */
  completes(value: Json): boolean
  /** The part that the client asked for at the end of the response and has not received; null = none. */
  readonly missing: string | null
  /** The protocol's end of a complete response; empty = none. */
  readonly endMarker: string
  /** Edits to the client's body that make an upstream continue after the text. @param spent tokens of the text */
  edits(body: Buffer, text: string, spent: number): Edit[]
  /** Starts to translate another response. @param before called when the usage is sent to the client */
  createTranslation(before: () => PriorUsage): EventTranslation
}

export interface EventTranslation {
  /** The client's events for this event. @param text removes the text that the client already has */
  translate(value: Json, text: (part: string) => string): Json[]
  render(value: Json): string
}

/** Characters of kept text: repeating a longer response in a request would cost too much. */
const MAX_TEXT_CHARS = 1024 * 1024
const DONE = '[DONE]'

/** One streamed response that another upstream could continue: records the client's events, edits the request, joins the responses. */
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

  /** Records an event of the upstream that the client gets unchanged. */
  recordSent({ text, value }: EventContent): void {
    if (text === DONE) this.#done = true
    else if (isObject(value)) this.#record(value)
    else if (text !== '') this.#obstacle ??= 'an event was no JSON object'
  }

  /** Records that the client gets an event that is too large to parse. */
  recordOversize(): void {
    this.#obstacle ??= 'an event was too large to look into'
  }

  /** Is this event, not yet sent to the client, the last that the client needs? */
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

  /** Edits that ask another upstream for the rest. Trailing white space of the text so far is removed: Anthropic refuses it. */
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
    // Read the event despite an obstacle: the response may be complete.
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

/** Removes from the beginning of a text in parts the white space that the client already has and the upstream may repeat. */
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
 * Adds the counts of earlier responses to a usage.
 * @param counts added to the members that the usage has
 * @param also added in any case, to 0 if the usage has no such member
 */
export function addPriorUsage(usage: Json, counts: Counts, also: Counts = {}): Json {
  const sum: Json = { ...usage }
  for (const name of Object.keys(also)) sum[name] ??= 0
  for (const [name, more] of Object.entries({ ...counts, ...also })) {
    if (typeof sum[name] === 'number') sum[name] = (sum[name] as number) + (more ?? 0)
  }
  return sum
}
