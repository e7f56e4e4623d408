import type { CallCount, CountedRequest } from './calls.ts'

/**
 * What one warm request may run through at most. Each function costs its compilation in the first minute, and each call
 * on every request. When a change needs less, lower its limit here.
 */
export const CALL_LIMITS: Readonly<Record<CountedRequest, CallCount>> = {
  unary: { files: 137, functions: 595, calls: 1170 },
  stream: { files: 145, functions: 640, calls: 6150 },
  'translated stream': { files: 170, functions: 780, calls: 7550 },
}

/** What is aimed at. */
export const CALL_TARGETS: Readonly<Record<CountedRequest, Partial<CallCount>>> = {
  unary: { files: 95, functions: 420, calls: 800 },
  stream: { calls: 1900 },
  'translated stream': { files: 120 },
}
