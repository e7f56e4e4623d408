/**
 * Round numbers for a value axis from 0: steps of 1, 2 or 5 times a power of ten.
 * @param max - the largest value
 * @param divisible - whether values between whole numbers make sense
 * @returns ascending, the first is 0, the last is not below `max`
 */
export function axisTicks(max: number, divisible: boolean): number[] {
  const rough = (max > 0 ? max : 1) / 3
  const power = 10 ** Math.floor(Math.log10(rough))
  const nice = ([1, 2, 5, 10].find(times => times * power >= rough * (1 - 1e-9)) ?? 10) * power
  const step = divisible ? nice : Math.max(1, nice)
  const many = Math.max(1, Math.ceil((max / step) * (1 - 1e-9)))
  // Multiply instead of adding up: 0.1 + 0.2 is not 0.3.
  return Array.from({ length: many + 1 }, (_, n) => Number((n * step).toPrecision(12)))
}

/** The distance between labelled bars, so that labels do not touch. @param room - for all labels. @param label - for one */
export function labelStep(bars: number, room: number, label: number): number {
  return Math.max(1, Math.ceil((bars * label) / Math.max(label, room)))
}
