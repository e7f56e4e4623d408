import type { SimulatedRequest } from '../request.ts'
import { json, type SimulatedResponse } from '../simulated-response.ts'

const CATEGORIES = [
  'harassment', 'harassment/threatening', 'hate', 'hate/threatening', 'illicit', 'illicit/violent',
  'self-harm', 'self-harm/intent', 'self-harm/instructions',
  'sexual', 'sexual/minors', 'violence', 'violence/graphic',
] as const

/** POST /v1/moderations: flags nothing. Each text gets its own result. */
export function moderate(request: SimulatedRequest): SimulatedResponse {
  const { json: body } = request
  const { input } = body
  const texts = Array.isArray(input) && input.every(item => typeof item === 'string') ? input.length : 1
  const result = {
    flagged: false,
    categories: each(false),
    category_scores: each(0.0001),
    category_applied_input_types: each(['text']),
  }
  const results = Array.from({ length: texts }, () => result)
  return json({ id: request.id('modr-'), model: request.model || 'sim-moderation', results })
}

function each<T>(value: T): Record<string, T> {
  return Object.fromEntries(CATEGORIES.map(name => [name, value]))
}
