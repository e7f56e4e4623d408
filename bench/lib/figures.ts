/** The value below which a share `q` of the values lies; NaN of none. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** `12.3 (11.0 - 14.2)`: the median and the spread. */
export function spread(values: readonly number[], digits = 1): string {
  if (values.length === 0 || Number.isNaN(median(values))) return '-'
  const text = (value: number) => value.toFixed(digits)
  return `${text(median(values))} (${text(Math.min(...values))} - ${text(Math.max(...values))})`
}

/** A figure with the interval in which its true value lies with 95 %. */
export interface Interval {
  readonly low: number
  readonly middle: number
  readonly high: number
}

/**
 * How much more B takes than A, of pairs that were measured one right after the
 * other: the median of the ratios, less 1, with its interval by order statistics,
 * which asks nothing of the distribution. What slows both of a pair cancels out.
 */
export function relativeExcess(a: readonly number[], b: readonly number[]): Interval {
  const ratios = b.map((value, i) => value / (a[i] as number) - 1).toSorted((x, y) => x - y)
  const n = ratios.length
  const rank = Math.max(0, Math.floor((n - 1.96 * Math.sqrt(n)) / 2))
  return { low: ratios[rank] as number, middle: median(ratios), high: ratios[n - 1 - rank] as number }
}

/** `+1.2 % (-0.4 - +2.9)`. */
export function percent({ low, middle, high }: Interval): string {
  const text = (value: number) => `${value < 0 ? '' : '+'}${(value * 100).toFixed(1)}`
  return `${text(middle)} % (${text(low)} to ${text(high)})`
}

/** Prints the date, the version of Node, and the parameters of a run. */
export function printHeading(...parameters: readonly string[]): void {
  console.log(heading(...parameters))
}

export function heading(...parameters: readonly string[]): string {
  return [new Date().toISOString().slice(0, 10), `Node ${process.version}`, ...parameters].join(', ')
}

/** Prints a table; the first column stands on the left, the others on the right. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const lines = [head, ...rows]
  const widths = head.map((_, i) => Math.max(...lines.map(line => (line[i] ?? '').length)))
  console.log()
  for (const line of lines) {
    console.log(
      line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join('  '),
    )
  }
}

/** Ends a run that hangs. */
export function endAfter(seconds: number): void {
  setTimeout(() => {
    console.error(`not done after ${seconds} s`)
    process.exit(1)
  }, seconds * 1000).unref()
}
