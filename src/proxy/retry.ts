import type { ErrorCode, GatewayError } from '../errors.ts'

/** How an attempt failed of which the client has seen nothing. */
export interface Failed {
  /** The row of the error table, or null where the upstream answered itself. */
  readonly error: GatewayError | null
  /** The upstream's HTTP status, or null where none came. */
  readonly status: number | null
  /** Milliseconds that the upstream asked to be left alone, or null. */
  readonly retryAfterMs: number | null
}

export interface Chances {
  /** Attempts that are still allowed. */
  readonly attemptsLeft: number
  /** There is a candidate that was not asked yet. */
  readonly othersLeft: boolean
  /** How often this candidate was asked in a row, this failure included. */
  readonly tries: number
  /** Milliseconds of the total timeout that are left. */
  readonly timeLeft: number
  /** Between 0 and 1. */
  readonly random: number
}

export type Decision =
  | { readonly action: 'next'; readonly delayMs: number }
  | { readonly action: 'same'; readonly delayMs: number }
  | { readonly action: 'stop' }

/** Statuses of an upstream after which another attempt may fare better. */
const RETRYABLE = new Set([401, 402, 403, 408, 429, 500, 502, 503, 504, 529])
/** Those that the same upstream would only repeat: its credential or its account is at fault. */
const HOPELESS_HERE = new Set([401, 402, 403])
/** An upstream that was silent is not asked twice. */
const SILENT: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['first_byte_timeout', 'idle_timeout', 'connect_timeout'])
/** Milliseconds that are waited for an upstream which asks for it, when there is no other. */
export const SHORT_WAIT = 5_000
const FIRST_BACKOFF = 100
const LONGEST_BACKOFF = 2_000

/** Is this status a failure that another candidate could mend? */
export function isRetryableStatus(status: number): boolean {
  return RETRYABLE.has(status)
}

/**
 * What to do after a failed attempt. Another candidate is asked at once; the same
 * one again only where that can help, after the time that it asked for or a
 * jittered backoff.
 */
export function afterFailure(failed: Failed, chances: Chances): Decision {
  if (chances.attemptsLeft <= 0 || !isRetryable(failed)) return { action: 'stop' }
  if (chances.othersLeft) return { action: 'next', delayMs: 0 }
  if (failed.status !== null && HOPELESS_HERE.has(failed.status)) return { action: 'stop' }
  if (failed.error !== null && SILENT.has(failed.error.code)) return { action: 'stop' }
  const delayMs = failed.retryAfterMs ?? backoff(chances.tries, chances.random)
  if (delayMs > SHORT_WAIT || delayMs >= chances.timeLeft) return { action: 'stop' }
  return { action: 'same', delayMs }
}

function isRetryable({ error, status }: Failed): boolean {
  if (error !== null) return error.source === 'upstream' && error.retryable
  return status !== null && isRetryableStatus(status)
}

/** Exponential, between half and all of it. */
function backoff(tries: number, random: number): number {
  return Math.min(FIRST_BACKOFF * 2 ** (tries - 1), LONGEST_BACKOFF) * (0.5 + random / 2)
}

/**
 * What an answer asks for: `retry-after-ms`, or `retry-after` in seconds or as a
 * date (RFC 9110 section 10.2.3).
 *
 * @param nowMs milliseconds since 1970
 * @returns milliseconds, or null where nothing usable is said
 */
export function retryAfter(header: (name: string) => string | null, nowMs: number): number | null {
  const ms = number(header('retry-after-ms'))
  if (ms !== null) return ms
  const text = header('retry-after')
  const seconds = number(text)
  if (seconds !== null) return seconds * 1000
  const date = text === null ? NaN : Date.parse(text)
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs)
}

function number(text: string | null): number | null {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null
}
