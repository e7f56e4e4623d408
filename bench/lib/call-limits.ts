import type { CallCount, CountedRequest } from './calls.ts'

/**
 * What one warm request may run through at most. Each function costs its compilation in the first minute, and each call
 * on every request. When a change needs less, lower its limit here.
 */
export const CALL_LIMITS: Readonly<Record<CountedRequest, CallCount>> = {
  unary: { files: 140, functions: 605, calls: 1035 },
  stream: { files: 151, functions: 655, calls: 1860 },
  'translated stream': { files: 183, functions: 828, calls: 3650 },
}

/** What is aimed at. */
export const CALL_TARGETS: Readonly<Record<CountedRequest, Partial<CallCount>>> = {
  unary: { files: 95, functions: 420, calls: 800 },
  stream: { calls: 1900 },
  'translated stream': { files: 120 },
}
