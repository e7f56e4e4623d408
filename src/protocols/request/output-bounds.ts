import { JsonCursor, closingQuote } from '../json/cursor.ts'
import { scanJson, type Field } from '../json/json-scan.ts'
import type { BoundPlaces, Endpoint } from '../endpoint/protocol.ts'
import { WatchedKeys } from '../json/watched-keys.ts'

/** The output that a request asks for. Includes every spelling that some server accepts. */
export interface OutputBounds {
  /** Maximum output of one response, from the members that the endpoint's protocol obeys; null = no limit. */
  readonly bound: number | null
  /** The largest figure from any spelling, because a server may obey spellings that the protocol does not have. */
  readonly other: number
  /** Maximum tokens of thinking that are not part of the output. */
  readonly thinking: number
  /** Number of responses. Each response has its own output. */
  readonly responses: number
  /** The first member whose value is not a whole number of at least 0; null = none. */
  readonly fault: string | null
}

/** No model generates more tokens. */
export const MAX_TOKENS = 1_000_000_000

type Kind = 'bound' | 'count' | 'thinking' | 'container'

/** Kinds by names without case and separators: servers in Go accept any case, and protocol buffers accept `maxTokens` and `max_tokens`. */
const KINDS: ReadonlyMap<string, Kind> = new Map(Object.entries({
  bound: [
    'maxtokens', 'maxcompletiontokens', 'maxoutputtokens', 'maxnewtokens', 'maxtokenstosample', 'maxtokenstogenerate', 'maxtokencount',
    'maxgenlen', 'maxlength', 'maxresponseoutputtokens', 'numpredict', 'npredict',
  ],
  count: [
    'n', 'bestof', 'candidatecount', 'numimages', 'numberofimages', 'samplecount', 'numsamples', 'numoutputs', 'numreturnsequences',
    'numgenerations', 'numcompletions',
  ],
  thinking: ['thinkingbudget', 'budgettokens', 'maxthinkingtokens', 'thinkingtokenbudget', 'reasoningbudget', 'maxreasoningtokens'],
  container: [
    'generationconfig', 'inferenceconfig', 'textgenerationconfig', 'samplingparams', 'parameters', 'options', 'config', 'extrabody',
    'additionalmodelrequestfields', 'response', 'session', 'thinking', 'thinkingconfig', 'reasoning', 'reasoningconfig',
  ],
} satisfies Record<Kind, readonly string[]>).flatMap(([kind, names]) => names.map(name => [name, kind as Kind])))

/** Objects whose members limit thinking instead of output. */
const THINKING_CONTAINERS: ReadonlySet<string> = new Set(['thinking', 'thinkingconfig', 'reasoning', 'reasoningconfig'])

/** All members of a request that limit the output, or contain such members. */
export const OUTPUT_MEMBERS: readonly string[] = [...KINDS.keys()]
const MEMBERS = new WatchedKeys([], [], OUTPUT_MEMBERS)

/** Maximum number of nested containers. No client sends more. */
const MAX_DEPTH = 8
/** Maximum bytes of a value that are read. A valid number is shorter. */
const MAX_VALUE_BYTES = 40
/** Maximum bytes of a member's name in an error message. */
const MAX_NAME_BYTES = 200

/** Reads only the members that were recorded while the body arrived. */
export function readOutputBounds(endpoint: Endpoint, body: Buffer, fields: ReadonlyMap<string, readonly Field[]>): OutputBounds {
  const reader = new BoundsReader(endpoint, body)
  for (const name of OUTPUT_MEMBERS) {
    for (const { keyStart, start, end } of fields.get(name) ?? []) reader.member(name, keyStart + 1, start, end)
  }
  return reader.bounds()
}

/** Where values stand that bound the output, in any spelling that some server reads. @param body a valid JSON object */
export function outputBoundValues(endpoint: Endpoint, body: Buffer): { readonly start: number, readonly end: number }[] {
  const values: { start: number, end: number }[] = []
  const scanned = scanJson(body, MEMBERS)
  if (!scanned.ok) return values
  const reader = new BoundsReader(endpoint, body, (start, end) => values.push({ start, end }))
  for (const [name, fields] of scanned.fields) for (const { keyStart, start, end } of fields) reader.member(name, keyStart + 1, start, end)
  return values
}

/** The members of a request that limit the output, as a separate JSON object. */
export function outputMembers(body: Buffer, fields: ReadonlyMap<string, readonly Field[]>): Buffer {
  const members = OUTPUT_MEMBERS.flatMap(name => fields.get(name) ?? []).sort((a, b) => a.keyStart - b.keyStart)
  return Buffer.from(`{${members.map(({ keyStart, end }) => body.toString('utf8', keyStart, end)).join(',')}}`)
}

class BoundsReader {
  readonly #body: Buffer
  readonly #isThinkingIncluded: boolean
  /** true if the endpoint accepts `"inf"`, which sets no limit. */
  readonly #takesInfinity: boolean
  readonly #places: BoundPlaces
  /** The largest figure at each place that the protocol obeys; null = a value at this place sets no limit. */
  readonly #bounds = new Map<string, number | null>()
  /** true if one of the values, other than `null`, sets no limit. */
  #isUnbounded = false
  #entered: Set<string> | null = null
  #other = 0
  #thinking = 0
  #responses = 1
  #fault: string | null = null

  readonly #onBound: ((start: number, end: number) => void) | null

  constructor({ outputBounds, boundsThinking, session }: Endpoint, body: Buffer, onBound: ((start: number, end: number) => void) | null = null) {
    this.#onBound = onBound
    this.#body = body
    this.#takesInfinity = session?.required === true
    this.#places = outputBounds
    this.#isThinkingIncluded = boundsThinking
  }

  bounds(): OutputBounds {
    const known = [...this.#bounds.values()].filter(bound => bound !== null)
    return {
      bound: known.length === 0 || this.#isUnbounded ? null : Math.max(...known),
      other: this.#isThinkingIncluded ? Math.max(this.#other, this.#thinking) : this.#other,
      thinking: this.#isThinkingIncluded ? 0 : this.#thinking,
      responses: this.#responses,
      fault: this.#fault,
    }
  }

  /** @param keyStart the index after the opening quote of the member's name */
  member(name: string, keyStart: number, start: number, end: number, parent: Place = ROOT, depth = 0): void {
    const kind = KINDS.get(name)
    if (kind === undefined) return
    const place = this.#placeOf(name, keyStart, parent)
    if (kind === 'container') this.#container(name, place, start, end, depth)
    else this.#figure(kind, place, start, end)
  }

  #container(name: string, place: Place, start: number, end: number, depth: number): void {
    this.#enter(place.name)
    const cursor = new JsonCursor(this.#body, start, end)
    if (depth === MAX_DEPTH || !cursor.beginObject()) return
    while (cursor.nextMember()) {
      const found = MEMBERS.find(this.#body, cursor.keyStart, cursor.keyEnd)
      const { keyStart } = cursor
      if (!cursor.skip() || found === null) continue
      const { valueStart, valueEnd } = cursor
      if (KINDS.get(found) === 'bound' && THINKING_CONTAINERS.has(name)) this.#figure('thinking', this.#placeOf(found, keyStart, place), valueStart, valueEnd)
      else this.member(found, keyStart, valueStart, valueEnd, place, depth + 1)
    }
  }

  /**
   * Records that an object is entered. If the name of the object is repeated, parsers use the first or the last object, which may set no
   * limit.
   */
  #enter(place: string): void {
    if (!this.#places.names.has(place)) return
    this.#entered ??= new Set()
    if (this.#entered.has(place)) this.#isUnbounded = true
    this.#entered.add(place)
  }

  #figure(kind: Kind, place: Place, start: number, end: number): void {
    const text = this.#body.toString('latin1', start, Math.min(end, start + MAX_VALUE_BYTES))
    const isPlain = isPlainCount(text)
    // With -1, Gemini's model chooses how much it thinks.
    const isAutomatic = kind === 'thinking' && text === '-1'
    const isInfinite = this.#takesInfinity && text === '"inf"'
    if (!isPlain && !isAutomatic && !isInfinite && text !== 'null') this.#fault ??= place.path
    const value = isInfinite ? null : worstReading(text)
    if (kind === 'count') this.#responses = Math.max(this.#responses, value ?? 1)
    else if (kind === 'thinking') this.#thinking = Math.max(this.#thinking, value ?? 0)
    else {
      this.#onBound?.(start, end)
      this.#bound(place, isPlain && value !== 0 ? value : null, value ?? 0, text === 'null')
    }
  }

  /**
   * Records a limit. 0 sets no limit, because some servers store an unset number as 0.
   * If a name is repeated in any spelling, parsers use the first or the last value. So if one of the values sets no limit, the server may
   * use no limit.
   */
  #bound({ path, name }: Place, bound: number | null, worst: number, isNull: boolean): void {
    this.#other = Math.max(this.#other, worst)
    if (!this.#places.names.has(name)) return
    if (bound === null && !isNull) this.#isUnbounded = true
    const earlier = this.#bounds.get(name)
    if (bound === null || earlier === null) this.#bounds.set(name, null)
    else if (this.#places.paths.has(path)) this.#bounds.set(name, Math.max(earlier ?? 0, bound))
  }

  #placeOf(name: string, keyStart: number, parent: Place): Place {
    // Servers that know `extra_body` treat the members of `extra_body` as members of the request.
    const around = name === 'extrabody' ? parent.name : join(parent.name, name)
    return { path: join(parent.path, this.#nameAt(keyStart)), name: around }
  }

  #nameAt(keyStart: number): string {
    const end = closingQuote(this.#body, keyStart, this.#body.length)
    const raw = this.#body.toString('utf8', keyStart, Math.min(end, keyStart + MAX_NAME_BYTES))
    return raw.includes('\\') && end - keyStart <= MAX_NAME_BYTES ? JSON.parse(`"${raw}"`) as string : raw
  }
}

interface Place {
  /** The path as the body spells it. */
  readonly path: string
  /** The path without case and separators. */
  readonly name: string
}

const ROOT: Place = { path: '', name: '' }

function join(parent: string, name: string): string {
  return parent === '' ? name : `${parent}.${name}`
}

/** Tells whether all servers read the text as the same whole number of at least 0. */
export function isPlainCount(text: string): boolean {
  return /^(?:0|[1-9]\d*)$/.test(text)
}

/**
 * The largest number that a lenient server reads from a value; null = none. Python accepts `"1_000"`, and other servers cut off fractions.
 */
export function worstReading(text: string): number | null {
  if (text === 'true') return 1
  const plain = text.replace(/["_\s]/g, '')
  const number = /^\+?inf/i.test(plain) ? Infinity : Number.parseFloat(plain)
  return number >= 0 ? Math.min(Math.ceil(number), MAX_TOKENS) : null
}
