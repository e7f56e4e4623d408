import type { Behaviour } from '../behaviour.ts'
import { asksForReasoning } from './chat.ts'
import { event, NUMBER, template, TEXT } from '../event.ts'
import { count, list, record, string, type Json } from '../json.ts'
import { planOutput, reasoningOf, textOf, reasoningWords, words, type Plan } from '../plan.ts'
import { endsInToolResult, promptTokens } from '../prompt.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, sse, type SimulatedResponse, type EventStream } from '../simulated-response.ts'
import { argumentPieces, callTool, readTools, type ToolCall } from '../tool.ts'
import { countUsage, figure, type Counts } from '../usage.ts'

/** POST /v1/responses */
export function createResponse(request: SimulatedRequest): SimulatedResponse {
  return request.json['stream'] === true ? streamResponse(request) : completeResponse(request)
}

/** POST /v1/responses/input_tokens */
export function countInputTokens(request: SimulatedRequest): SimulatedResponse {
  const { json: body, behaviour } = request
  const tokens = behaviour.input ?? promptTokens(body['instructions'], body['input'])
  return json({ object: 'response.input_tokens', input_tokens: tokens })
}

function completeResponse(request: SimulatedRequest): SimulatedResponse {
  const spoken = planResponse(request)
  return json(finishedResponse(spoken, spoken.items.map(item => item.done)))
}

/** All events in order, from `response.created` to `response.completed`. */
export function streamResponse(request: SimulatedRequest): EventStream {
  const spoken = planResponse(request)
  // This protocol numbers the events of a response from 0.
  let sequence = 0
  const output: Json[] = []
  const emit = (type: string, data: Json) => event({ type, sequence_number: sequence++, ...data }, type)
  const repeat = function* (type: string, data: Json, pieces: Iterable<string>) {
    const fill = template(event({ type, sequence_number: NUMBER, ...data, delta: TEXT }, type))
    for (const piece of pieces) yield fill(sequence++, piece)
  }
  const events = function* () {
    yield emit('response.created', { response: spoken.start })
    yield emit('response.in_progress', { response: spoken.start })
    for (const [index, item] of spoken.items.entries()) {
      yield emit('response.output_item.added', { output_index: index, item: item.added })
      yield* itemEvents(item, { item_id: item.id, output_index: index }, emit, repeat)
      yield emit('response.output_item.done', { output_index: index, item: item.done })
      output.push(item.done)
    }
  }
  const last = () => {
    const type = spoken.plan.clipped && !spoken.call ? 'response.incomplete' : 'response.completed'
    return emit(type, { response: finishedResponse(spoken, output) })
  }
  const error = () =>
    emit('error', { code: 'server_error', message: 'The simulated model is overloaded.', param: null })
  return sse(events(), last, error)
}

type Emit = (type: string, data: Json) => string
type Repeat = (type: string, data: Json, pieces: Iterable<string>) => Iterable<string>

/** An item of the output: its first form, its final form, and the events between them. */
interface Item {
  readonly kind: 'reasoning' | 'message' | 'function_call'
  readonly id: string
  readonly added: Json
  readonly done: Json
  readonly text: string
  readonly pieces: () => Iterable<string>
}

interface PlannedOutput {
  readonly plan: Plan
  readonly call: ToolCall | null
  readonly items: readonly Item[]
  /** The response object in the first event. */
  readonly start: Json
  readonly usage: Json | undefined
}

function* itemEvents(item: Item, at: Json, emit: Emit, repeat: Repeat): Iterable<string> {
  const { text } = item
  switch (item.kind) {
    case 'reasoning': {
      const here = { ...at, summary_index: 0 }
      const part = (said: string) => ({ ...here, part: { type: 'summary_text', text: said } })
      yield emit('response.reasoning_summary_part.added', part(''))
      yield* repeat('response.reasoning_summary_text.delta', here, item.pieces())
      yield emit('response.reasoning_summary_text.done', { ...here, text })
      yield emit('response.reasoning_summary_part.done', part(text))
      return
    }
    case 'function_call':
      for (const piece of item.pieces()) {
        yield emit('response.function_call_arguments.delta', { ...at, delta: piece })
      }
      yield emit('response.function_call_arguments.done', { ...at, arguments: text })
      return
    case 'message': {
      const here = { ...at, content_index: 0 }
      yield emit('response.content_part.added', { ...here, part: outputText('') })
      yield* repeat('response.output_text.delta', { ...here, logprobs: [] }, item.pieces())
      yield emit('response.output_text.done', { ...here, text, logprobs: [] })
      yield emit('response.content_part.done', { ...here, part: outputText(text) })
    }
  }
}

function planResponse(request: SimulatedRequest): PlannedOutput {
  const { json: body, behaviour } = request
  const call = chooseTool(body, behaviour)
  const plan = planOutput(behaviour, {
    limit: count(body['max_output_tokens'], null),
    reasons: asksForReasoning(record(body['reasoning'])['effort']),
    prefill: null,
  })
  const counts = countUsage(
    behaviour, promptTokens(body['instructions'], body['input']), call?.tokens ?? plan.tokens, plan.reasoning,
  )
  const items: Item[] = []
  if (plan.reasoning > 0) items.push(reasoningItem(request, plan))
  if (call) items.push(callItem(request, call))
  else if (plan.words > 0) items.push(messageItem(request, plan))
  return { plan, call, items, start: responseObject(request), usage: responseUsage(counts, behaviour) }
}

function chooseTool(body: Json, behaviour: Behaviour): ToolCall | null {
  const choice = record(body['tool_choice'])
  const forced = body['tool_choice'] === 'required' || choice['type'] === 'function'
    || choice['mode'] === 'required'
  const last = list(body['input']).slice(-1)
  const asked = behaviour.tool_call === true && !endsInToolResult(last)
  if (!asked && !(forced && list(body['tools']).length > 0)) return null
  return callTool(readTools(body['tools']), string(choice['name']))
}

function reasoningItem(request: SimulatedRequest, plan: Plan): Item {
  const id = request.id('rs_')
  const text = reasoningOf(plan)
  const sealed = list(request.json['include']).includes('reasoning.encrypted_content')
  const encrypted = sealed ? { encrypted_content: Buffer.from('simulated reasoning').toString('base64') } : {}
  return {
    kind: 'reasoning', id, text,
    added: { id, type: 'reasoning', summary: [], ...encrypted },
    done: { id, type: 'reasoning', summary: [{ type: 'summary_text', text }], ...encrypted },
    pieces: () => reasoningWords(plan),
  }
}

function messageItem(request: SimulatedRequest, plan: Plan): Item {
  const id = request.id('msg_')
  const text = textOf(plan)
  const start = { id, type: 'message', role: 'assistant' }
  const status = plan.clipped ? 'incomplete' : 'completed'
  return {
    kind: 'message', id, text,
    added: { ...start, status: 'in_progress', content: [] },
    done: { ...start, status, content: [outputText(text)] },
    pieces: () => words(plan),
  }
}

function callItem(request: SimulatedRequest, call: ToolCall): Item {
  const id = request.id('fc_')
  const start = { id, type: 'function_call', call_id: request.id('call_'), name: call.name }
  return {
    kind: 'function_call', id, text: call.arguments,
    added: { ...start, arguments: '', status: 'in_progress' },
    done: { ...start, arguments: call.arguments, status: 'completed' },
    pieces: () => argumentPieces(call),
  }
}

function outputText(text: string): Json {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

/** The response object in the last event. */
function finishedResponse(spoken: PlannedOutput, output: readonly Json[]): Json {
  const clipped = spoken.plan.clipped && !spoken.call
  return {
    ...spoken.start,
    status: clipped ? 'incomplete' : 'completed',
    completed_at: clipped ? null : spoken.start['created_at'],
    incomplete_details: clipped ? { reason: 'max_output_tokens' } : null,
    output,
    usage: spoken.usage,
  }
}

function responseUsage(counts: Counts, behaviour: Behaviour): Json | undefined {
  if (behaviour.usage === 'none') return undefined
  return {
    input_tokens: figure(behaviour, counts.input),
    input_tokens_details: {
      cached_tokens: figure(behaviour, counts.cached),
      cache_write_tokens: figure(behaviour, counts.cacheWrite5m + counts.cacheWrite1h),
    },
    output_tokens: figure(behaviour, counts.output),
    output_tokens_details: { reasoning_tokens: figure(behaviour, counts.reasoning) },
    total_tokens: figure(behaviour, counts.input + counts.output),
  }
}

function responseObject(request: SimulatedRequest): Json {
  const { json: body } = request
  return {
    id: request.id('resp_'),
    object: 'response',
    created_at: request.now,
    status: 'in_progress',
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    max_tool_calls: null,
    metadata: body['metadata'] ?? {},
    model: request.model,
    output: [],
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: body['previous_response_id'] ?? null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    reasoning: body['reasoning'] ?? { effort: null, summary: null },
    safety_identifier: null,
    service_tier: 'default',
    store: body['store'] ?? true,
    temperature: body['temperature'] ?? 1,
    text: body['text'] ?? { format: { type: 'text' } },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_logprobs: 0,
    top_p: body['top_p'] ?? 1,
    truncation: body['truncation'] ?? 'disabled',
    usage: null,
    user: null,
    access_programs: null,
  }
}
