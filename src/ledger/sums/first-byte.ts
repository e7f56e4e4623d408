import { isObject } from '../../base/is-object.ts'
import { parseStoredJson } from '../stored-values.ts'

/** Times to the first byte are counted in buckets whose bounds are 10 % apart, so that errors are at most 5 %. 176 buckets: 30 minutes. */

const MIN_BUCKET_MS = 0.1
const BUCKET_RATIO = 1.1

/** The number of times in each bucket. Tables store JSON such as `{"85":3,"86":1}`. */
export type Histogram = Map<number, number>

export function bucketOf(ms: number): number {
  return ms <= MIN_BUCKET_MS ? 0 : Math.ceil(Math.log(ms / MIN_BUCKET_MS) / Math.log(BUCKET_RATIO))
}

/** @param times number of times to add; negative = subtract */
export function addToBucket(histogram: Histogram, bucket: number, times: number): void {
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + times)
}

/** Adds a stored histogram. Ignores malformed text. */
export function addHistogramJson(histogram: Histogram, stored: string): void {
  const counts = parseStoredJson(stored)
  if (!isObject(counts)) return
  for (const [bucket, times] of Object.entries(counts)) {
    if (/^\d+$/.test(bucket) && Number.isSafeInteger(times)) addToBucket(histogram, Number(bucket), times as number)
  }
}

/** @returns the text for a table, without empty buckets */
export function toHistogramJson(histogram: Histogram): string {
  return JSON.stringify(Object.fromEntries([...histogram].filter(([, times]) => times !== 0)))
}

/** @returns for each share (0 to 1), the ms within which that share of the first bytes arrived; null = the histogram is empty */
export function quantiles(histogram: Histogram, shares: readonly number[]): (number | null)[] {
  const buckets = [...histogram].filter(([, times]) => times > 0).sort(([a], [b]) => a - b)
  const all = buckets.reduce((sum, [, times]) => sum + times, 0)
  return shares.map(share => {
    let left = Math.max(1, Math.ceil(share * all))
    const found = buckets.find(([, times]) => (left -= times) <= 0)
    return found === undefined ? null : bucketMidpoint(found[0])
  })
}

/** @returns ms in the middle of the bucket, with three digits */
function bucketMidpoint(bucket: number): number {
  return Number((MIN_BUCKET_MS * BUCKET_RATIO ** (bucket - 0.5)).toPrecision(3))
}
