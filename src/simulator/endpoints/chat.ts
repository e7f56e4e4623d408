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

/** Maximum of `n`, as at the provider. */
const MAX_CHOICES = 128

/** POST /v1/chat/completions */
export function chatCompletion(request: SimulatedRequest): SimulatedResponse {
  const { json: body, behaviour } = request
  const call = chooseTool(body, behaviour)
  const plan = planOutput(behaviour, {
    limit: count(body['max_completion_tokens'], null) ?? count(body['max_tokens'], null),
    reasons: asksForReasoning(body['reasoning_effort']),
    prefill: prefillOf(body['messages'], 'assistant'),
  })
  const choices = Math.min(Math.max(count(body['n'], 1), 1), MAX_CHOICES)
  const input = promptTokens(body['messages'])
  const text = (call?.tokens ?? plan.tokens) * choices
  const counts = countUsage(behaviour, input, text, plan.reasoning * choices)
  const finish = call ? 'tool_calls' : plan.clipped ? 'length' : 'stop'
  const spoken: PlannedOutput = { plan, call, choices, finish, usage: chatUsage(counts, behaviour) }
  return body['stream'] === true ? streamed(request, spoken) : complete(request, spoken)
}

interface PlannedOutput {
  readonly plan: Plan
  readonly call: ToolCall | null
  readonly choices: number
  readonly finish: string
  /** The usage to report; undefined = usage is not reported. */
  readonly usage: Json | undefined
}

/** The usage in the format of chat completions and completions. */
export function chatUsage(counts: Counts, behaviour: Behaviour): Json | undefined {
  if (behaviour.usage === 'none') return undefined
  return {
    prompt_tokens: figure(behaviour, counts.input),
    completion_tokens: figure(behaviour, counts.output),
    total_tokens: figure(behaviour, counts.input + counts.output),
    prompt_tokens_details: {
      cached_tokens: figure(behaviour, counts.cached),
      cache_write_tokens: figure(behaviour, counts.cacheWrite5m + counts.cacheWrite1h),
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: figure(behaviour, counts.reasoning),
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

/** Tells whether an effort asks for reasoning. The chat and responses protocols have the same values. */
export function asksForReasoning(effort: unknown): boolean {
  return typeof effort === 'string' && effort !== 'none'
}

function chooseTool(body: Json, behaviour: Behaviour): ToolCall | null {
  const choice = record(body['tool_choice'])
  const forced = body['tool_choice'] === 'required' || choice['type'] === 'function'
    || record(choice['allowed_tools'])['mode'] === 'required'
  const asked = behaviour.tool_call === true && !endsInToolResult(body['messages'])
  if (!asked && !(forced && list(body['tools']).length > 0)) return null
  return callTool(readTools(body['tools']), string(record(choice['function'])['name']))
}

function complete(request: SimulatedRequest, spoken: PlannedOutput): SimulatedResponse {
  const { plan, call } = spoken
  const message = {
    role: 'assistant',
    content: call ? null : textOf(plan),
    ...(plan.reasoning > 0 ? { reasoning_content: reasoningOf(plan) } : {}),
    refusal: null,
    annotations: [],
    ...(call ? { tool_calls: [toolCall(request, call, call.arguments)] } : {}),
  }
  return json({
    ...head(request, 'chat.completion'),
    choices: Array.from({ length: spoken.choices }, (_, index) => ({
      index, message, logprobs: null, finish_reason: spoken.finish,
    })),
    usage: spoken.usage,
  })
}

function streamed(request: SimulatedRequest, spoken: PlannedOutput): SimulatedResponse {
  const withUsage = record(request.json['stream_options'])['include_usage'] === true
  const start = head(request, 'chat.completion.chunk')
  const chunk = (index: number, delta: Json, finish: string | null = null) => event({
    ...start,
    choices: [{ index, delta, logprobs: null, finish_reason: finish }],
    ...(withUsage && spoken.usage ? { usage: null } : {}),
  })
  const total = () => event({ ...start, choices: [], usage: spoken.usage })
  const events = function* () {
    const { plan, call, choices } = spoken
    const each = Array.from({ length: choices }, (_, index) => index)
    for (const i of each) yield chunk(i, { role: 'assistant', content: call ? null : '', refusal: null })
    const thought = each.map(i => template(chunk(i, { content: null, reasoning_content: TEXT })))
    for (const piece of reasoningWords(plan)) for (const fill of thought) yield fill(piece)
    if (call) for (const i of each) yield* toolChunks(request, call, delta => chunk(i, delta))
    else {
      const text = each.map(i => template(chunk(i, { content: TEXT })))
      for (const piece of words(plan)) for (const fill of text) yield fill(piece)
    }
    for (const i of each) yield chunk(i, {}, spoken.finish)
    if (withUsage && spoken.usage) yield total()
  }
  return sse(events(), () => 'data: [DONE]\n\n', () => errorEvent('chat', ''))
}

function* toolChunks(request: SimulatedRequest, call: ToolCall, chunk: (delta: Json) => string) {
  yield chunk({ tool_calls: [{ index: 0, ...toolCall(request, call, '') }] })
  for (const piece of argumentPieces(call)) {
    yield chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })
  }
}

function toolCall(request: SimulatedRequest, call: ToolCall, text: string): Json {
  return { id: request.id('call_'), type: 'function', function: { name: call.name, arguments: text } }
}

function head(request: SimulatedRequest, object: string): Json {
  return {
    id: request.id('chatcmpl-'),
    object,
    created: request.now,
    model: request.model,
    service_tier: 'default',
    system_fingerprint: 'fp_simulator',
  }
}
