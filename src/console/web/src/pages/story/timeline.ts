import type { RequestDetails } from '../../../../api/logs.ts'

/** One bar of the drawing: milliseconds from the start of the request. */
export interface Bar {
  readonly kind: 'gateway' | 'attempt' | 'waiting' | 'answer'
  /** Which attempt, from 0; of attempts alone. */
  readonly attempt: number | null
  readonly label: string
  readonly from: number
  readonly to: number
  /** It ended badly. */
  readonly failed: boolean
  /** It has not ended: `to` is the present. */
  readonly open: boolean
}

export interface Timeline {
  readonly bars: readonly Bar[]
  /** Milliseconds that the drawing is wide. */
  readonly span: number
  /** Where the scale has its lines, milliseconds; 0 is one of them. */
  readonly ticks: readonly number[]
  readonly firstByteMs: number | null
}

/** Nobody's failure: what was wanted came, or nobody wanted it any more. */
const HARMLESS: ReadonlySet<string> = new Set(['ok', 'complete', 'client_gone'])
/** What is shorter than this is nobody's concern, milliseconds. */
const NEGLIGIBLE = 1

/** @param elapsedMs since the request began, as far as it is still running */
export function timelineOf(story: RequestDetails, elapsedMs: number): Timeline {
  const { row, running } = story
  const end = running ? elapsedMs : row.duration_ms
  const attempts = attemptBars(story, end)
  const bars: Bar[] = []
  let reached = 0
  for (const bar of attempts) {
    if (bar.from - reached > NEGLIGIBLE
      || bars.length === 0) bars.push(gap(bars.length === 0, reached, bar.from))
    bars.push(bar)
    reached = Math.max(reached, bar.to)
  }
  if (attempts.length === 0) bars.push({ ...gap(true, 0, end ?? 0), failed: !HARMLESS.has(row.end)
    && !running, open: running })
  const firstByteMs = row.first_byte_ms
  if (firstByteMs !== null) {
    bars.push({
      kind: 'answer', attempt: null, label: 'Answer sent to the client', from: firstByteMs,
      to: Math.max(firstByteMs, end ?? firstByteMs), failed: !HARMLESS.has(row.end) && !running,
        open: running,
    })
  }
  const span = Math.max(1, ...bars.map(({ to }) => to), end ?? 0)
  return { bars, span, ticks: ticks(span), firstByteMs }
}

function attemptBars({ attempts, running }: RequestDetails, end: number | null): Bar[] {
  let reached = 0
  return attempts.map(({ at_ms, ms, outcome }, n) => {
    // What has no time stays behind what it came after.
    const from = at_ms ?? reached
    const open = running && n === attempts.length - 1
    const to = open ? Math.max(from + ms, end ?? 0) : from + ms
    reached = to
    return { kind: 'attempt', attempt: n, label: `Attempt ${n + 1}`, from, to, failed: !HARMLESS.has(outcome)
      && !open, open }
  })
}

function gap(isFirst: boolean, from: number, to: number): Bar {
  const label = isFirst ? 'Received and checked' : 'Waited before the next attempt'
  return {
    kind: isFirst ? 'gateway' : 'waiting', attempt: null, label, from, to: Math.max(from, to), failed: false,
      open: false,
  }
}

/** At most six lines of a scale that people can read: steps of 1, 2 or 5 times a power of ten. */
export function ticks(span: number): number[] {
  const rough = span / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find(times => times * power >= rough) ?? 10) * power
  const count = Math.floor(span / step + 1e-9)
  // Multiplied, not added up: 0.1 + 0.2 is no tick.
  return Array.from({ length: count + 1 }, (_, n) => Number((n * step).toPrecision(12)))
}
