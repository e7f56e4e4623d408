import { ERRORS, type ErrorCode, type ErrorSource } from '../../base/errors.ts'
import { addToBucket, bucketOf, quantiles, type Histogram } from '../../ledger/sums/first-byte.ts'
import type { AttemptRecord } from '../../ledger/row.ts'
import { parseAttempts } from '../../ledger/stored-values.ts'
import type { Latency, Outcomes, UpstreamReport } from '../api/upstream.ts'
import { MINUTE, floor, periodOf } from './period.ts'
import type { Sql, StoredRow, View } from './view.ts'

/** Maximum number of requests to read. If there are more, only the newest are read. */
const MAX_ROWS = 100_000
const MAX_SLICES = 100
const SLICE_SIZES = [1, 5, 15, 60, 360, 1440].map(minutes => minutes * MINUTE)
/** 4xx statuses of an upstream that the client does not cause. */
const PROVIDER_STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 408, 409, 425, 429])

type Outcome = Exclude<keyof Outcomes, 'requests'>

/** Reports how requests ended, how long they took, and to which upstreams they failed over. */
export function upstreamReport(view: View, name: string, query: { readonly from?: string, readonly to?: string }): UpstreamReport {
  const period = periodOf(query, view.now)
  const size = SLICE_SIZES.find(ms => (period.to - period.from) / ms <= MAX_SLICES) ?? SLICE_SIZES.at(-1)!
  const rows = view.rows(rowsOf(view, name, period.from, period.to))
  const first = floor(period.from, size)
  const slices = Array.from({ length: Math.ceil((period.to - first) / size) }, () => new Tally())
  const all = new Tally()
  const attempts = new Counter()
  const failoversTo = new Counter()
  const failoversFrom = new Counter()
  for (const row of rows) {
    const tried = parseAttempts(row['attempts'])
    if (tried === null && row['upstream'] === name) attempts.add('unreadable')
    for (const [n, attempt] of tried?.entries() ?? []) {
      const next = tried?.[n + 1]
      if (attempt.upstream === name) {
        attempts.add(attemptText(attempt))
        if (next !== undefined && next.upstream !== name) failoversTo.add(next.upstream)
      } else if (next?.upstream === name) {
        failoversFrom.add(attempt.upstream)
      }
    }
    if (row['upstream'] !== name && !wasRefusedFor(row, name)) continue
    for (const tally of [all, slices[Math.floor((Number(row['started_at']) - first) / size)]]) tally?.add(row)
  }
  return {
    from: new Date(period.from).toISOString(), to: new Date(period.to).toISOString(),
    complete: rows.length < MAX_ROWS, slice_ms: size,
    outcomes: all.outcomes, first_byte: all.firstByte, duration: all.duration,
    slices: slices.map((tally, n) => ({
      at: new Date(first + n * size).toISOString(), outcomes: tally.outcomes, first_byte: tally.firstByte, duration: tally.duration,
    })),
    attempts: attempts.sorted.map(([outcome, count]) => ({ outcome, count })),
    failovers_to: failoversTo.sorted.map(([upstream, count]) => ({ upstream, count })),
    failovers_from: failoversFrom.sorted.map(([upstream, count]) => ({ upstream, count })),
  }
}

/** The requests that the upstream served or was tried for, and the refused requests of a route to the upstream. */
function rowsOf({ dialect }: View, name: string, from: number, to: number): Sql {
  const escaped = (text: string) => `%${text.replace(/[\\%_]/g, '\\$&')}%`
  return {
    sql: `SELECT started_at, upstream, status, "end", error, first_byte_ms, duration_ms, attempts, route FROM requests
      WHERE started_at >= ? AND started_at < ? AND (upstream = ?
        OR (attempts ${dialect.like} ? ESCAPE '\\' AND ${dialect.listLength('attempts')} > 1)
        OR (upstream IS NULL AND "end" = 'refused' AND route ${dialect.like} ? ESCAPE '\\'))
      ORDER BY started_at DESC LIMIT ${MAX_ROWS}`,
    values: [from, to, name, escaped(`"upstream":${JSON.stringify(name)}`), escaped(name)],
  }
}

/** Tells whether the request was refused on a route to the upstream. In the text of a route, the targets follow an arrow. */
function wasRefusedFor({ end, upstream, route }: StoredRow, name: string): boolean {
  if (end !== 'refused' || upstream !== null) return false
  const targets = String(route).split(' -> ').at(-1) ?? ''
  return targets.split(/[^\w.-]+/).includes(name)
}

/** Describes an attempt: `status 503 overloaded_error`, `connect_timeout`, `ok`. */
function attemptText({ outcome, status, said }: AttemptRecord): string {
  if (outcome !== 'error_answer') return outcome
  return [status === undefined ? outcome : `status ${status}`, ...said === undefined ? [] : [said]].join(' ')
}

function outcomeOf({ end, error, status }: StoredRow): Outcome {
  if (end === 'complete') return 'complete'
  if (end === 'client_gone') return 'client_disconnected'
  if (end === 'refused' || end === 'interrupted') return 'gateway_refusals'
  if (typeof error === 'string' && Object.hasOwn(ERRORS, error)) return OUTCOMES[ERRORS[error as ErrorCode].source]
  const code = Number(status ?? 0)
  return code >= 400 && code < 500 && !PROVIDER_STATUSES.has(code) ? 'client_errors' : 'provider_failures'
}

const OUTCOMES: Readonly<Record<ErrorSource, Outcome>> = {
  client: 'client_errors', gateway: 'gateway_refusals', upstream: 'provider_failures',
}

class Tally {
  readonly outcomes = { requests: 0, complete: 0, client_disconnected: 0, provider_failures: 0, client_errors: 0, gateway_refusals: 0 }
  readonly #firstByte: Histogram = new Map()
  readonly #duration: Histogram = new Map()

  add(row: StoredRow): void {
    const { first_byte_ms: firstByte, duration_ms: duration } = row
    this.outcomes.requests++
    this.outcomes[outcomeOf(row)]++
    if (typeof firstByte === 'number') addToBucket(this.#firstByte, bucketOf(firstByte), 1)
    if (typeof duration === 'number') addToBucket(this.#duration, bucketOf(duration), 1)
  }

  get firstByte(): Latency {
    return latency(this.#firstByte)
  }

  get duration(): Latency {
    return latency(this.#duration)
  }
}

function latency(histogram: Histogram): Latency {
  const [p50 = null, p95 = null, p99 = null] = quantiles(histogram, [0.5, 0.95, 0.99])
  return { p50_ms: p50, p95_ms: p95, p99_ms: p99 }
}

class Counter {
  readonly #counts = new Map<string, number>()

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  /** The names and their counts, the highest count first. */
  get sorted(): [name: string, count: number][] {
    return [...this.#counts].sort((a, b) => b[1] - a[1])
  }
}
