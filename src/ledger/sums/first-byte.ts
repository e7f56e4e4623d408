import { isObject } from '../../base/is-object.ts'
import { parseStoredJson } from '../stored-values.ts'

/** Times to the first byte in buckets with bounds 10 % apart: a read time is within 5 %. From 0.1 ms; 176 buckets reach half an hour. */

const MIN_BUCKET_MS = 0.1
const BUCKET_RATIO = 1.1

/** Times in each bucket. Tables store JSON: `{"85":3,"86":1}`. */
export type Histogram = Map<number, number>

export function bucketOf(ms: number): number {
  return ms <= MIN_BUCKET_MS ? 0 : Math.ceil(Math.log(ms / MIN_BUCKET_MS) / Math.log(BUCKET_RATIO))
}

/** A negative number subtracts. */
export function addToBucket(histogram: Histogram, bucket: number, times: number): void {
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + times)
}

/** Malformed text is ignored. */
export function addHistogramJson(histogram: Histogram, stored: string): void {
  const counts = parseStoredJson(stored)
  if (!isObject(counts)) return
  for (const [bucket, times] of Object.entries(counts)) {
    if (/^\d+$/.test(bucket) && Number.isSafeInteger(times)) addToBucket(histogram, Number(bucket), times as number)
  }
}

/** Text for a table; empty buckets are left out. */
export function toHistogramJson(histogram: Histogram): string {
  return JSON.stringify(Object.fromEntries([...histogram].filter(([, times]) => times !== 0)))
}

/** For each share (0 to 1), the ms within which it arrived; null = the histogram is empty. */
export function quantiles(histogram: Histogram, shares: readonly number[]): (number | null)[] {
  const buckets = [...histogram].filter(([, times]) => times > 0).sort(([a], [b]) => a - b)
  const all = buckets.reduce((sum, [, times]) => sum + times, 0)
  return shares.map(share => {
    let left = Math.max(1, Math.ceil(share * all))
    const found = buckets.find(([, times]) => (left -= times) <= 0)
    return found === undefined ? null : bucketMidpoint(found[0])
  })
}

/** The middle of the bucket, with three digits. */
function bucketMidpoint(bucket: number): number {
  return Number((MIN_BUCKET_MS * BUCKET_RATIO ** (bucket - 0.5)).toPrecision(3))
}
