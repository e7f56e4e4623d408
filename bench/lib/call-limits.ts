import type { CallCount, CountedRequest } from './calls.ts'

/**
 * What one warm request may run through at most. Each function costs its compilation in the first minute, and each call
 * on every request. When a change needs less, lower its limit here, and leave 5 %: on a busy machine events arrive in
 * other turns of the event loop, and a stream lasts until its next checkpoint.
 */
export const CALL_LIMITS: Readonly<Record<CountedRequest, CallCount>> = {
  unary: { files: 122, functions: 495, calls: 810 },
  stream: { files: 135, functions: 575, calls: 1720 },
  'translated stream': { files: 169, functions: 770, calls: 3700 },
}

/** What is aimed at. */
export const CALL_TARGETS: Readonly<Record<CountedRequest, Partial<CallCount>>> = {
  unary: { files: 95, functions: 420, calls: 800 },
  stream: { calls: 1900 },
  'translated stream': { files: 120 },
}
