import type { Behaviour } from '../behaviour.ts'
import { errorEvent } from '../error.ts'
import { event, template, TEXT } from '../event.ts'
import { count, list, record, string, type Json } from '../json.ts'
import { planOutput, reasoningOf, textOf, reasoningWords, words, type Plan } from '../plan.ts'
import { endsInToolResult, prefillOf, promptTokens } from '../prompt.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, sse, type SimulatedResponse } from '../simulated-response.ts'
import { argumentPieces, callTool, readTools, type ToolCall } from '../tool.ts'
import { countUsage, figure, type Counts } from '../usage.ts'

/** Signature of thinking. Clients must send it back unchanged, as only the provider can read a signature. */
const SIGNATURE = Buffer.from('simulated signature of a thinking block').toString('base64')

/** POST /v1/messages, with or without `?beta=true`. */
export function message(request: SimulatedRequest): SimulatedResponse {
  const { json: body, behaviour } = request
  const call = chooseTool(body, behaviour)
  const plan = planOutput(behaviour, {
    limit: count(body['max_tokens'], null),
    reasons: asksForThinking(record(body['thinking'])),
    prefill: prefillOf(body['messages'], 'assistant'),
  })
  const counts = countUsage(
    behaviour, promptTokens(body['system'], body['messages']), call?.tokens ?? plan.tokens, plan.reasoning,
  )
  const spoken: PlannedOutput = {
    plan, call, counts,
    stop: call ? 'tool_use' : plan.clipped ? 'max_tokens' : 'end_turn',
    hideThinking: record(body['thinking'])['display'] === 'omitted',
  }
  return body['stream'] === true ? streamed(request, spoken) : complete(request, spoken)
}

/** POST /v1/messages/count_tokens */
export function countMessageTokens(request: SimulatedRequest): SimulatedResponse {
  const { json: body, behaviour } = request
  return json({ input_tokens: behaviour.input ?? promptTokens(body['system'], body['messages']) })
}

interface PlannedOutput {
  readonly plan: Plan
  readonly call: ToolCall | null
  readonly counts: Counts
  readonly stop: string
  /** true if the response contains the signature of thinking but not its text. */
  readonly hideThinking: boolean
}

function asksForThinking(thinking: Json): boolean {
  return thinking['type'] === 'enabled' || thinking['type'] === 'adaptive'
}

function chooseTool(body: Json, behaviour: Behaviour): ToolCall | null {
  const choice = record(body['tool_choice'])
  const forced = choice['type'] === 'any' || choice['type'] === 'tool'
  const asked = behaviour.tool_call === true && !endsInToolResult(body['messages'])
  if (!asked && !(forced && list(body['tools']).length > 0)) return null
  return callTool(readTools(body['tools']), string(choice['name']))
}

function complete(request: SimulatedRequest, spoken: PlannedOutput): SimulatedResponse {
  const { plan, call, counts } = spoken
  const content: Json[] = []
  if (plan.reasoning > 0) {
    const thinking = spoken.hideThinking ? '' : reasoningOf(plan)
    content.push({ type: 'thinking', thinking, signature: SIGNATURE })
  }
  if (call) content.push(toolUse(request, call, JSON.parse(call.arguments)))
  else if (plan.words > 0) content.push({ type: 'text', text: textOf(plan), citations: null })
  return json({
    ...head(request, content, spoken.stop),
    usage: startUsage(counts, request.behaviour, counts.output),
  })
}

function streamed(request: SimulatedRequest, spoken: PlannedOutput): SimulatedResponse {
  const { plan, call, counts } = spoken
  const { behaviour } = request
  const events = function* () {
    const usage = startUsage(counts, behaviour, Math.min(counts.output, 1))
    yield named({ type: 'message_start', message: { ...head(request, [], null), usage } })
    let index = 0
    if (plan.reasoning > 0) {
      yield start(index, { type: 'thinking', thinking: '', signature: '' })
      yield PING
      const fill = template(delta(index, { type: 'thinking_delta', thinking: TEXT }))
      if (!spoken.hideThinking) for (const piece of reasoningWords(plan)) yield fill(piece)
      yield delta(index, { type: 'signature_delta', signature: SIGNATURE })
      yield stop(index++)
    }
    if (call) {
      yield start(index, toolUse(request, call, {}))
      if (index === 0) yield PING
      for (const piece of argumentPieces(call)) {
        yield delta(index, { type: 'input_json_delta', partial_json: piece })
      }
      yield stop(index)
    } else if (plan.words > 0) {
      yield start(index, { type: 'text', text: '', citations: null })
      if (index === 0) yield PING
      const fill = template(delta(index, { type: 'text_delta', text: TEXT }))
      for (const piece of words(plan)) yield fill(piece)
      yield stop(index)
    }
    yield named({
      type: 'message_delta',
      delta: { stop_reason: spoken.stop, stop_sequence: null, stop_details: null, container: null },
      usage: deltaUsage(counts, behaviour),
    })
  }
  const last = () => named({ type: 'message_stop' })
  return sse(events(), last, () => errorEvent('messages', request.requestId))
}

const PING = named({ type: 'ping' })

function named(data: Json): string {
  return event(data, string(data['type']))
}

function start(index: number, block: Json): string {
  return named({ type: 'content_block_start', index, content_block: block })
}

function delta(index: number, change: Json): string {
  return named({ type: 'content_block_delta', index, delta: change })
}

function stop(index: number): string {
  return named({ type: 'content_block_stop', index })
}

function toolUse(request: SimulatedRequest, call: ToolCall, input: unknown): Json {
  return { type: 'tool_use', id: request.id('toolu_'), name: call.name, input, caller: { type: 'direct' } }
}

function head(request: SimulatedRequest, content: readonly Json[], stopReason: string | null): Json {
  return {
    id: request.id('msg_'),
    type: 'message',
    role: 'assistant',
    model: request.model,
    content,
    stop_reason: stopReason,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
  }
}

/** `input_tokens` excludes tokens that are read from the cache or written to it. */
function startUsage(counts: Counts, behaviour: Behaviour, output: number): Json | undefined {
  if (behaviour.usage === 'none') return undefined
  const nothing = behaviour.usage === 'null'
  return {
    ...inputUsage(counts, behaviour),
    cache_creation: nothing ? null : {
      ephemeral_5m_input_tokens: figure(behaviour, counts.cacheWrite5m),
      ephemeral_1h_input_tokens: figure(behaviour, counts.cacheWrite1h),
    },
    output_tokens: figure(behaviour, output),
    output_tokens_details: { thinking_tokens: figure(behaviour, Math.min(counts.reasoning, output)) },
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: 'global',
    speed: 'standard',
  }
}

/** The usage in `message_delta`. The counts are cumulative, so the last one is for the whole response. */
function deltaUsage(counts: Counts, behaviour: Behaviour): Json | undefined {
  if (behaviour.usage === 'none') return undefined
  return {
    ...inputUsage(counts, behaviour),
    output_tokens: figure(behaviour, counts.output),
    output_tokens_details: { thinking_tokens: figure(behaviour, counts.reasoning) },
    server_tool_use: null,
  }
}

function inputUsage(counts: Counts, behaviour: Behaviour): Json {
  const written = counts.cacheWrite5m + counts.cacheWrite1h
  return {
    input_tokens: figure(behaviour, Math.max(counts.input - counts.cached - written, 0)),
    cache_creation_input_tokens: figure(behaviour, written),
    cache_read_input_tokens: figure(behaviour, counts.cached),
  }
}
