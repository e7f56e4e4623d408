import type { Path } from '../text/document.ts'
import { formatPath, type Findings } from '../text/findings.ts'
import type { QueueLimits } from '../key-types.ts'
import type { RawQueue, RawTimeouts } from '../raw.ts'
import type { Timeouts } from '../types.ts'
import { parseDuration, parseSize } from '../units.ts'

/** The default timeouts that the specification gives. */
export const DEFAULT_TIMEOUTS: Timeouts = { connect: 10_000, firstByte: 30 * 60_000, idle: 30 * 60_000, total: 30 * 60_000 }
/** The longest timer in whole days: node fires a timer above 2^31-1 ms at once. */
export const MAX_TIMER = 24 * 86_400_000

/** Parses a duration for a timer. @returns ms */
export function timerDurationOf(text: string | undefined, path: Path, defaultMs: number, findings: Findings, minMs = 1): number {
  if (text === undefined) return defaultMs
  const ms = durationOf(text, path, findings, minMs)
  if (ms === null) return defaultMs
  if (ms > MAX_TIMER) findings.error(path, `${formatPath(path)} must be at most 24d`)
  return ms
}

/** Parses a duration. @returns ms; null = invalid, which is reported */
export function durationOf(text: string, path: Path, findings: Findings, minMs = 1): number | null {
  const ms = findings.parsed(path, () => parseDuration(text))
  if (ms !== null && ms < minMs) findings.error(path, `${formatPath(path)} must be ${minMs === 1 ? 'longer than 0' : `at least ${minMs / 1_000}s`}`)
  return ms
}

export function buildTimeouts(raw: RawTimeouts | undefined, path: Path, defaults: Timeouts, findings: Findings): Timeouts {
  if (raw === undefined) return defaults
  return {
    connect: timerDurationOf(raw.connect, [...path, 'connect'], defaults.connect, findings),
    firstByte: timerDurationOf(raw.first_byte, [...path, 'first_byte'], defaults.firstByte, findings),
    idle: timerDurationOf(raw.idle, [...path, 'idle'], defaults.idle, findings),
    total: timerDurationOf(raw.total, [...path, 'total'], defaults.total, findings),
  }
}

/** @returns null = the values are missing, which is reported */
export function buildQueue(raw: RawQueue | undefined, path: Path, findings: Findings): QueueLimits | null {
  if (raw?.wait === undefined || raw.size === undefined) return null
  return { wait: timerDurationOf(raw.wait, [...path, 'wait'], 0, findings), size: raw.size }
}

/** Parses a size. @returns bytes, at least 1 */
export function sizeOf(size: string | number | undefined, path: Path, defaultBytes: number, findings: Findings): number {
  if (size === undefined) return defaultBytes
  const bytes = findings.parsed(path, () => parseSize(size))
  if (bytes === null) return defaultBytes
  if (bytes < 1) findings.error(path, `${formatPath(path)} must be at least 1b`)
  return bytes
}

/** Warns of a secret in quotes: no vendor's secret has quotes, but some readers of env files keep them. */
export function checkQuotes(secret: string, path: Path, findings: Findings): void {
  if (!/^(["']).*\1$/.test(secret)) return
  findings.warn(path, "the value begins and ends with a quote, and both are part of it; docker's --env-file keeps them")
}
