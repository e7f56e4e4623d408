import type { RequestDetails } from '../../../../api/logs.ts'

/** One step of the timeline. Times are in ms since the start of the request. */
export interface Bar {
  readonly kind: 'gateway' | 'attempt' | 'waiting' | 'response'
  /** Index of the attempt; null = the step is not an attempt. */
  readonly attempt: number | null
  readonly label: string
  readonly from: number
  readonly to: number
  readonly failed: boolean
  /** true if the step is still running: `to` is then the current time. */
  readonly open: boolean
}

export interface Timeline {
  readonly bars: readonly Bar[]
  /** The ms that the scale shows. */
  readonly span: number
  /** Positions of the grid lines in ms. The first is 0. */
  readonly ticks: readonly number[]
  readonly firstByteMs: number | null
}

/** Outcomes of attempts that do not count as failures. */
const NOT_FAILED: ReadonlySet<string> = new Set(['ok', 'complete', 'client_gone', 'hedge_lost'])
/** ms; shorter gaps between attempts are not shown. */
const SHORTEST_GAP = 1

/** @param elapsedMs - ms since the start; used only while the request runs */
export function timelineOf(story: RequestDetails, elapsedMs: number): Timeline {
  const { row, running } = story
  const end = running ? elapsedMs : row.duration_ms
  const attempts = attemptBars(story, end)
  const bars: Bar[] = []
  let reachedMs = 0
  for (const bar of attempts) {
    if (bar.from - reachedMs > SHORTEST_GAP
      || bars.length === 0) bars.push(gap(bars.length === 0, reachedMs, bar.from))
    bars.push(bar)
    reachedMs = Math.max(reachedMs, bar.to)
  }
  if (attempts.length === 0) bars.push({ ...gap(true, 0, end ?? 0), failed: !NOT_FAILED.has(row.end)
    && !running, open: running })
  const firstByteMs = row.first_byte_ms
  if (firstByteMs !== null) {
    bars.push({
      kind: 'response', attempt: null, label: 'Response sent to the client', from: firstByteMs,
      to: Math.max(firstByteMs, end ?? firstByteMs), failed: !NOT_FAILED.has(row.end) && !running,
        open: running,
    })
  }
  const span = Math.max(1, ...bars.map(({ to }) => to), end ?? 0)
  return { bars, span, ticks: ticks(span), firstByteMs }
}

function attemptBars({ attempts, running }: RequestDetails, end: number | null): Bar[] {
  let reachedMs = 0
  return attempts.map(({ at_ms, ms, outcome }, n) => {
    // An attempt without a start time began at the end of the previous attempt.
    const from = at_ms ?? reachedMs
    const open = running && n === attempts.length - 1
    const to = open ? Math.max(from + ms, end ?? 0) : from + ms
    reachedMs = to
    return { kind: 'attempt', attempt: n, label: `Attempt ${n + 1}`, from, to, failed: !NOT_FAILED.has(outcome)
      && !open, open }
  })
}

function gap(isFirst: boolean, from: number, to: number): Bar {
  const label = isFirst ? 'Received and checked' : 'Wait before next attempt'
  return {
    kind: isFirst ? 'gateway' : 'waiting', attempt: null, label, from, to: Math.max(from, to), failed: false,
      open: false,
  }
}

/** Positions of at most six grid lines. The step is 1, 2 or 5 times a power of ten. */
export function ticks(span: number): number[] {
  const rough = span / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find(times => times * power >= rough) ?? 10) * power
  const count = Math.floor(span / step + 1e-9)
  // Multiply, because repeated addition adds rounding errors: 0.1 + 0.2 is not 0.3.
  return Array.from({ length: count + 1 }, (_, n) => Number((n * step).toPrecision(12)))
}
