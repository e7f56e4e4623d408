import { chatUsage } from './chat.ts'
import { errorEvent } from '../error.ts'
import { event, template, TEXT } from '../event.ts'
import { count, list, record, string, type Json } from '../json.ts'
import { planOutput, textOf, words, type Plan } from '../plan.ts'
import { inputTokens } from '../prompt.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, sse, type SimulatedResponse } from '../simulated-response.ts'
import { countUsage } from '../usage.ts'

/** The provider's default for `max_tokens`. */
const DEFAULT_LIMIT = 16
const MAX_CHOICES = 128

/** POST /v1/completions: continues each prompt, `n` times. Models of this protocol do not reason and call no tools. */
export function completion(request: SimulatedRequest): SimulatedResponse {
  const { json: body, behaviour } = request
  const prompts = promptsOf(body['prompt'])
  const copies = Math.max(count(body['n'], 1), 1)
  const limit = count(body['max_tokens'], null) ?? Math.max(DEFAULT_LIMIT, behaviour.tokens ?? 0)
  const plans = prompts.flatMap(prompt => {
    const plan = planOutput({ ...behaviour, reasoning: 0 }, { limit, reasons: false, prefill: prompt })
    return Array<Plan>(Math.min(copies, MAX_CHOICES)).fill(plan)
  }).slice(0, MAX_CHOICES)
  const tokens = plans.reduce((sum, plan) => sum + plan.tokens, 0)
  const usage = chatUsage(countUsage(behaviour, inputTokens(body['prompt']), tokens, 0), behaviour)
  const start = {
    id: request.id('cmpl-'),
    object: 'text_completion',
    created: request.now,
    model: request.model,
    system_fingerprint: 'fp_simulator',
  }
  if (body['stream'] !== true) {
    const choices = plans.map((plan, index) => choice(index, textOf(plan), reason(plan)))
    return json({ ...start, choices, usage })
  }
  const withUsage = record(body['stream_options'])['include_usage'] === true && usage !== undefined
  const chunk = (index: number, text: string, finish: string | null) =>
    event({ ...start, choices: [choice(index, text, finish)], ...(withUsage ? { usage: null } : {}) })
  const events = function* () {
    for (const [index, plan] of plans.entries()) {
      const fill = template(chunk(index, TEXT, null))
      for (const piece of words(plan)) yield fill(piece)
      yield chunk(index, '', reason(plan))
    }
    if (withUsage) yield event({ ...start, choices: [], usage })
  }
  return sse(events(), () => 'data: [DONE]\n\n', () => errorEvent('chat', ''))
}

/** The prompts. A prompt is a text or an array of token numbers; an array of prompts asks for several responses. */
function promptsOf(value: unknown): string[] {
  const several = list(value)
  if (several.length === 0 || several.some(item => typeof item === 'number')) return [string(value)]
  return several.map(item => string(item))
}

function choice(index: number, text: string, finish: string | null): Json {
  return { text, index, logprobs: null, finish_reason: finish }
}

function reason(plan: Plan): string {
  return plan.clipped ? 'length' : 'stop'
}
