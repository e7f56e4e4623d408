import type { Protocol } from './prompt.ts'

/** What one event of a stream, or a whole answer, says. */
export interface ParsedOutput {
  readonly text: string
  readonly reasoning: string
  /** Figures by their names in the protocol; null = it carries none. */
  readonly usage: Readonly<Record<string, number>> | null
  /** Why it ended, in the protocol's word. */
  readonly finish: string | null
  /** It is the stream's proper last event. */
  readonly isLast: boolean
  /** The message of an error. */
  readonly error: string | null
}

const NOTHING: ParsedOutput = { text: '', reasoning: '', usage: null, finish: null, isLast: false, error: null }

/** @param data an event's data; what is not of the protocol's shape says nothing */
export function readEvent(protocol: Protocol, data: string): ParsedOutput {
  if (data.trim() === '[DONE]') return { ...NOTHING, isLast: true }
  const event = parse(data)
  if (event === undefined) return { ...NOTHING, error: 'An event of the stream is not JSON.' }
  return { ...NOTHING, ...EVENTS[protocol](event), ...errorIn(event) }
}

/** @param body the answer to a request that did not ask for a stream, or an error */
export function readResponse(protocol: Protocol, body: string): ParsedOutput {
  const answer = parse(body)
  if (answer === undefined) return { ...NOTHING, error: body === '' ? 'The answer is empty.'
    : 'The answer is not JSON.' }
  return { ...NOTHING, isLast: true, ...ANSWERS[protocol](answer), ...errorIn(answer) }
}

/** @param body of an answer that is not one of the API: the console's own, where it refuses a request */
export function problemMessage(body: string): string | null {
  return word(parse(body), 'message')
}

type Reading = (json: unknown) => Partial<ParsedOutput>

const EVENTS: Readonly<Record<Protocol, Reading>> = {
  chat: event => ({
    text: text(event, 'choices', 0, 'delta', 'content'),
    reasoning: text(event, 'choices', 0, 'delta', 'reasoning_content'),
    finish: word(event, 'choices', 0, 'finish_reason'),
    usage: figures(at(event, 'usage')),
  }),
  responses: event => {
    const type = word(event, 'type')
    return {
      text: type === 'response.output_text.delta' ? text(event, 'delta') : '',
      reasoning: type?.startsWith('response.reasoning') === true ? text(event, 'delta') : '',
      finish: word(event, 'response', 'incomplete_details', 'reason') ??
        (type === 'response.completed' ? 'completed' : null),
      usage: figures(at(event, 'response', 'usage')),
      isLast: type === 'response.completed' || type === 'response.incomplete' || type === 'response.failed',
    }
  },
  messages: event => ({
    text: text(event, 'delta', 'text'),
    reasoning: text(event, 'delta', 'thinking'),
    finish: word(event, 'delta', 'stop_reason'),
    usage: figures(at(event, 'message', 'usage') ?? at(event, 'usage')),
    isLast: word(event, 'type') === 'message_stop',
  }),
  generate: event => {
    const finish = word(event, 'candidates', 0, 'finishReason')
    return { ...parts(event), finish, usage: figures(at(event, 'usageMetadata')), isLast: finish !== null }
  },
}

const ANSWERS: Readonly<Record<Protocol, Reading>> = {
  chat: answer => ({
    text: text(answer, 'choices', 0, 'message', 'content'),
    reasoning: text(answer, 'choices', 0, 'message', 'reasoning_content'),
    finish: word(answer, 'choices', 0, 'finish_reason'),
    usage: figures(at(answer, 'usage')),
  }),
  responses: answer => ({
    text: list(at(answer, 'output')).flatMap(item => list(at(item, 'content')))
      .map(part => text(part, 'text')).join(''),
    reasoning: list(at(answer, 'output')).flatMap(item => list(at(item, 'summary')))
      .map(part => text(part, 'text')).join(''),
    finish: word(answer, 'incomplete_details', 'reason') ?? word(answer, 'status'),
    usage: figures(at(answer, 'usage')),
  }),
  messages: answer => ({
    text: list(at(answer, 'content')).map(block => text(block, 'text')).join(''),
    reasoning: list(at(answer, 'content')).map(block => text(block, 'thinking')).join(''),
    finish: word(answer, 'stop_reason'),
    usage: figures(at(answer, 'usage')),
  }),
  generate: answer => ({
    ...parts(answer),
    finish: word(answer, 'candidates', 0, 'finishReason'),
    usage: figures(at(answer, 'usageMetadata')),
  }),
}

function parts(json: unknown): Pick<ParsedOutput, 'text' | 'reasoning'> {
  const all = list(at(json, 'candidates', 0, 'content', 'parts'))
  const isThought = (part: unknown): boolean => at(part, 'thought') === true
  const join = (some: unknown[]): string => some.map(part => text(part, 'text')).join('')
  return { text: join(all.filter(part => !isThought(part))), reasoning: join(all.filter(isThought)) }
}

/** Every protocol has an `error` somewhere near the top. */
function errorIn(json: unknown): Partial<ParsedOutput> {
  const error = at(json, 'error') ?? at(json, 'response', 'error')
  if (error === null || error === undefined) {
    return word(json, 'type') === 'error'
      ? { error: word(json, 'message') ?? 'The upstream reported an error.' } : {}
  }
  return { error: word(error, 'message') ?? (typeof error === 'string' ? error : JSON.stringify(error)) }
}

/** The whole numbers of a usage object, those of its details too: `prompt_tokens_details.cached_tokens`. */
function figures(usage: unknown): Record<string, number> | null {
  if (typeof usage !== 'object' || usage === null || Array.isArray(usage)) return null
  const found: Record<string, number> = {}
  for (const [name, value] of Object.entries(usage)) {
    if (typeof value === 'number') found[name] = value
    for (const [inner, figure] of Object.entries(figures(value) ?? {})) found[`${name}.${inner}`] = figure
  }
  return Object.keys(found).length === 0 ? null : found
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    // Whoever asks says what it should have been.
    return undefined
  }
}

function at(json: unknown, ...path: (string | number)[]): unknown {
  let value = json
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = Object.hasOwn(value, name) ? (value as Record<string | number, unknown>)[name] : undefined
  }
  return value
}

function word(json: unknown, ...path: (string | number)[]): string | null {
  const value = at(json, ...path)
  return typeof value === 'string' ? value : null
}

function text(json: unknown, ...path: (string | number)[]): string {
  return word(json, ...path) ?? ''
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
