/** An exact decimal. The value is `units` times ten to the power of -`scale`. */
export interface Decimal {
  readonly units: bigint
  readonly scale: number
}

export const ZERO: Decimal = { units: 0n, scale: 0 }

/** Computed in advance, because BigInt's `**` is several times slower than the other operations in this file. */
const POWERS = Array.from({ length: 64 }, (_, exponent) => 10n ** BigInt(exponent))

function powerOfTen(exponent: number): bigint {
  return POWERS[exponent] ?? 10n ** BigInt(exponent)
}

const DECIMAL = /^(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,2}))?$/i

/** Parses a non-negative decimal in the notation of people or JSON: `2.50`, `.5`, `1e-7`. @throws RangeError for any other text */
export function parseDecimal(text: string): Decimal {
  const [match, whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  if (match === undefined || whole + fraction === '') throw new RangeError(`not a decimal: '${text}'`)
  const scale = fraction.length - Number(exponent)
  const units = BigInt(whole + fraction)
  return scale >= 0 ? { units, scale } : { units: units * powerOfTen(-scale), scale: 0 }
}

export function add(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale)
  return { units: unitsAt(a, scale) + unitsAt(b, scale), scale }
}

export function multiply(a: Decimal, b: Decimal): Decimal {
  return { units: a.units * b.units, scale: a.scale + b.scale }
}

/** Multiplies exactly by ten to the power of `places`. If `places` is negative, this is a division. */
export function shift(a: Decimal, places: number): Decimal {
  return places <= a.scale ? { units: a.units, scale: a.scale - places } : { units: a.units * powerOfTen(places - a.scale), scale: 0 }
}

/** Divides, and rounds to `scale` decimal places. Halves are rounded up. */
export function divide(a: Decimal, divisor: bigint, scale: number): Decimal {
  const exact = shift(a, scale)
  return { units: roundedQuotient(exact.units, divisor * powerOfTen(exact.scale)), scale }
}

/** The value in units of 10^-`scale`, rounded to a whole number. Halves are rounded up. */
export function toUnits(a: Decimal, scale: number): bigint {
  return scale >= a.scale ? unitsAt(a, scale) : roundedQuotient(a.units, powerOfTen(a.scale - scale))
}

/** Formats without an exponent and without trailing zeros: `0.0125`, `3`, `-0.5`. */
export function formatDecimal({ units, scale }: Decimal): string {
  const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, '0')
  const whole = digits.slice(0, digits.length - scale)
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '')
  return `${units < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

function unitsAt(a: Decimal, scale: number): bigint {
  return scale === a.scale ? a.units : a.units * powerOfTen(scale - a.scale)
}

function roundedQuotient(dividend: bigint, divisor: bigint): bigint {
  return (dividend * 2n + divisor) / (divisor * 2n)
}

/** Decimal places of picodollars (1e-12 USD), in which the cost of one token is exact if the price has at most six decimals. */
export const PICO_PLACES = 12

/**
 * Converts USD in the configuration's notation (`50`, `0.25`) to picodollars. Rounds down, so that a budget never exceeds its text.
 * @throws RangeError
 */
export function picoUsd(usd: string): bigint {
  const { units, scale } = parseDecimal(usd)
  return scale <= PICO_PLACES ? units * powerOfTen(PICO_PLACES - scale) : units / powerOfTen(scale - PICO_PLACES)
}

/** Formats picodollars (1e-12 USD) as an exact decimal in USD: `0.00066`, `12`, `-0.5`. */
export function formatUsd(pico: bigint): string {
  return formatDecimal({ units: pico, scale: PICO_PLACES })
}
