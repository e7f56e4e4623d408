import type { CallCount, CountedRequest } from './calls.ts'

/**
 * What one warm request may run through at most. Each function costs its compilation in the first minute, and each call
 * on every request. When a change needs less, lower its limit here.
 */
export const CALL_LIMITS: Readonly<Record<CountedRequest, CallCount>> = {
  unary: { files: 137, functions: 595, calls: 1170 },
  stream: { files: 148, functions: 645, calls: 2430 },
  'translated stream': { files: 172, functions: 790, calls: 3800 },
}

/** What is aimed at. */
export const CALL_TARGETS: Readonly<Record<CountedRequest, Partial<CallCount>>> = {
  unary: { files: 95, functions: 420, calls: 800 },
  stream: { calls: 1900 },
  'translated stream': { files: 120 },
}
