/**
 * Round numbers for a value axis that starts at 0. The step is 1, 2 or 5 times a power of ten.
 * @param max - the largest value
 * @param divisible - true if values between whole numbers have a meaning
 * @returns ascending numbers; the first is 0, and the last is at least `max`
 */
export function axisTicks(max: number, divisible: boolean): number[] {
  const rough = (max > 0 ? max : 1) / 3
  const power = 10 ** Math.floor(Math.log10(rough))
  const nice = ([1, 2, 5, 10].find(times => times * power >= rough * (1 - 1e-9)) ?? 10) * power
  const step = divisible ? nice : Math.max(1, nice)
  const many = Math.max(1, Math.ceil((max / step) * (1 - 1e-9)))
  // Multiply, because repeated addition adds rounding errors: 0.1 + 0.2 is not 0.3.
  return Array.from({ length: many + 1 }, (_, n) => Number((n * step).toPrecision(12)))
}

/**
 * The distance between bars with labels, so that the labels do not touch.
 * @param room - width for all labels.
 * @param label - width of one label
 */
export function labelStep(bars: number, room: number, label: number): number {
  return Math.max(1, Math.ceil((bars * label) / Math.max(label, room)))
}
