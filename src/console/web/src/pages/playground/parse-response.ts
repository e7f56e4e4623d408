import type { Protocol } from './prompt.ts'

/** A tool call, or a piece of a tool call. */
export interface ToolCallPart {
  /** Pieces with the same number are of the same call; null = this is a whole call. */
  readonly index: number | null
  readonly name: string
  /** The arguments as JSON, or a piece of them. */
  readonly input: string
}

/** The content of one stream event, or of a whole response. */
export interface ParsedOutput {
  readonly text: string
  readonly reasoning: string
  readonly toolCalls: readonly ToolCallPart[]
  /** Usage by the protocol's names; null = the event has no usage. */
  readonly usage: Readonly<Record<string, number>> | null
  /** The finish reason in the protocol's words; null = none. */
  readonly finish: string | null
  /** true if this event ends the stream regularly. */
  readonly isLast: boolean
  /** Error message. */
  readonly error: string | null
}

const EMPTY: ParsedOutput = { text: '', reasoning: '', toolCalls: [], usage: null, finish: null, isLast: false, error: null }

/** @param data - data of an event; data of an unknown shape gives an empty result */
export function readEvent(protocol: Protocol, data: string): ParsedOutput {
  if (data.trim() === '[DONE]') return { ...EMPTY, isLast: true }
  const event = parse(data)
  if (event === undefined) return { ...EMPTY, error: 'A stream event is not valid JSON.' }
  return { ...EMPTY, ...EVENTS[protocol](event), ...errorIn(event) }
}

/** @param body - body of a response that is not streamed, or of an error */
export function readResponse(protocol: Protocol, body: string): ParsedOutput {
  const response = parse(body)
  if (response === undefined) {
    return { ...EMPTY, error: body === '' ? 'The response is empty.' : 'The response is not valid JSON.' }
  }
  return { ...EMPTY, isLast: true, ...RESPONSES[protocol](response), ...errorIn(response) }
}

/** @returns the message of an error of the console itself, because such an error does not have the format of the protocol */
export function problemMessage(body: string): string | null {
  return stringAt(parse(body), 'message')
}

type Parser = (json: unknown) => Partial<ParsedOutput>

const EVENTS: Readonly<Record<Protocol, Parser>> = {
  chat: event => ({
    text: textAt(event, 'choices', 0, 'delta', 'content'),
    reasoning: textAt(event, 'choices', 0, 'delta', 'reasoning_content'),
    toolCalls: listOf(at(event, 'choices', 0, 'delta', 'tool_calls')).map(call => ({
      index: numberAt(call, 'index'), name: textAt(call, 'function', 'name'), input: textAt(call, 'function', 'arguments'),
    })),
    finish: stringAt(event, 'choices', 0, 'finish_reason'),
    usage: numbersIn(at(event, 'usage')),
  }),
  responses: event => {
    const type = stringAt(event, 'type')
    return {
      text: type === 'response.output_text.delta' ? textAt(event, 'delta') : '',
      reasoning: type?.startsWith('response.reasoning') === true ? textAt(event, 'delta') : '',
      toolCalls: type === 'response.function_call_arguments.delta'
        || (type === 'response.output_item.added' && stringAt(event, 'item', 'type') === 'function_call')
        ? [{ index: numberAt(event, 'output_index'), name: textAt(event, 'item', 'name'), input: textAt(event, 'delta') }] : [],
      finish: stringAt(event, 'response', 'incomplete_details', 'reason') ??
        (type === 'response.completed' ? 'completed' : null),
      usage: numbersIn(at(event, 'response', 'usage')),
      isLast: type === 'response.completed' || type === 'response.incomplete' || type === 'response.failed',
    }
  },
  messages: event => ({
    text: textAt(event, 'delta', 'text'),
    reasoning: textAt(event, 'delta', 'thinking'),
    toolCalls: stringAt(event, 'content_block', 'type') === 'tool_use' || stringAt(event, 'delta', 'type') === 'input_json_delta'
      ? [{ index: numberAt(event, 'index'), name: textAt(event, 'content_block', 'name'), input: textAt(event, 'delta', 'partial_json') }] : [],
    finish: stringAt(event, 'delta', 'stop_reason'),
    usage: numbersIn(at(event, 'message', 'usage') ?? at(event, 'usage')),
    isLast: stringAt(event, 'type') === 'message_stop',
  }),
  generate: event => {
    const finish = stringAt(event, 'candidates', 0, 'finishReason')
    return { ...parts(event), finish, usage: numbersIn(at(event, 'usageMetadata')), isLast: finish !== null }
  },
}

const RESPONSES: Readonly<Record<Protocol, Parser>> = {
  chat: response => ({
    text: textAt(response, 'choices', 0, 'message', 'content'),
    reasoning: textAt(response, 'choices', 0, 'message', 'reasoning_content'),
    toolCalls: listOf(at(response, 'choices', 0, 'message', 'tool_calls'))
      .map(call => wholeCall(at(call, 'function', 'name'), at(call, 'function', 'arguments'))),
    finish: stringAt(response, 'choices', 0, 'finish_reason'),
    usage: numbersIn(at(response, 'usage')),
  }),
  responses: response => ({
    text: listOf(at(response, 'output')).flatMap(item => listOf(at(item, 'content')))
      .map(part => textAt(part, 'text')).join(''),
    reasoning: listOf(at(response, 'output')).flatMap(item => listOf(at(item, 'summary')))
      .map(part => textAt(part, 'text')).join(''),
    toolCalls: listOf(at(response, 'output')).filter(item => stringAt(item, 'type') === 'function_call')
      .map(item => wholeCall(at(item, 'name'), at(item, 'arguments'))),
    finish: stringAt(response, 'incomplete_details', 'reason') ?? stringAt(response, 'status'),
    usage: numbersIn(at(response, 'usage')),
  }),
  messages: response => ({
    text: listOf(at(response, 'content')).map(block => textAt(block, 'text')).join(''),
    reasoning: listOf(at(response, 'content')).map(block => textAt(block, 'thinking')).join(''),
    toolCalls: listOf(at(response, 'content')).filter(block => stringAt(block, 'type') === 'tool_use')
      .map(block => wholeCall(at(block, 'name'), at(block, 'input'))),
    finish: stringAt(response, 'stop_reason'),
    usage: numbersIn(at(response, 'usage')),
  }),
  generate: response => ({
    ...parts(response),
    finish: stringAt(response, 'candidates', 0, 'finishReason'),
    usage: numbersIn(at(response, 'usageMetadata')),
  }),
}

function parts(json: unknown): Pick<ParsedOutput, 'text' | 'reasoning' | 'toolCalls'> {
  const all = listOf(at(json, 'candidates', 0, 'content', 'parts'))
  const isThought = (part: unknown): boolean => at(part, 'thought') === true
  const join = (some: unknown[]): string => some.map(part => textAt(part, 'text')).join('')
  return {
    text: join(all.filter(part => !isThought(part))),
    reasoning: join(all.filter(isThought)),
    toolCalls: all.map(part => at(part, 'functionCall')).filter(call => typeof call === 'object' && call !== null)
      .map(call => wholeCall(at(call, 'name'), at(call, 'args'))),
  }
}

/** @param input - JSON, as text or as a value */
function wholeCall(name: unknown, input: unknown): ToolCallPart {
  return { index: null, name: typeof name === 'string' ? name : '', input: typeof input === 'string' ? input : JSON.stringify(input ?? {}) }
}

/** Reads an error. In all protocols, the object `error` is at the top level or one level below. */
function errorIn(json: unknown): Partial<ParsedOutput> {
  const error = at(json, 'error') ?? at(json, 'response', 'error')
  if (error === null || error === undefined) {
    return stringAt(json, 'type') === 'error'
      ? { error: stringAt(json, 'message') ?? 'The upstream reported an error.' } : {}
  }
  return { error: stringAt(error, 'message') ?? (typeof error === 'string' ? error : JSON.stringify(error)) }
}

/** All numbers of a usage object. Nested numbers have a path: `prompt_tokens_details.cached_tokens`. */
function numbersIn(usage: unknown): Record<string, number> | null {
  if (typeof usage !== 'object' || usage === null || Array.isArray(usage)) return null
  const found: Record<string, number> = {}
  for (const [name, value] of Object.entries(usage)) {
    if (typeof value === 'number') found[name] = value
    for (const [inner, figure] of Object.entries(numbersIn(value) ?? {})) found[`${name}.${inner}`] = figure
  }
  return Object.keys(found).length === 0 ? null : found
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    // The callers report that the text is not JSON.
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

function stringAt(json: unknown, ...path: (string | number)[]): string | null {
  const value = at(json, ...path)
  return typeof value === 'string' ? value : null
}

function numberAt(json: unknown, ...path: (string | number)[]): number | null {
  const value = at(json, ...path)
  return typeof value === 'number' ? value : null
}

function textAt(json: unknown, ...path: (string | number)[]): string {
  return stringAt(json, ...path) ?? ''
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
