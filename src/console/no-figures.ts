import type { Figures } from './api/shapes.ts'

/** The figures without any request. */
export const NO_FIGURES: Figures = Object.freeze({
  requests: 0,
  errors: 0,
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  cost_usd: '0',
  estimated_requests: 0,
  estimated_cost_usd: '0',
  unpriced_requests: 0,
})
