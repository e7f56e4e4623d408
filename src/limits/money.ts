const DECIMAL = /^\+?(\d*)\.?(\d*)(?:e([+-]?\d{1,3}))?$/i

/**
 * An amount of USD, as an operator writes it, in 1e-12 USD: exact, and what is
 * finer than that is cut off, so that a budget is never more than was written.
 *
 * @param usd - a decimal such as `50`, `0.25` or `1e3`
 * @throws RangeError if it is anything else
 */
export function picoUsd(usd: string): bigint {
  const [, whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(usd) ?? []
  if (whole + fraction === '') throw new RangeError(`not an amount of USD: ${JSON.stringify(usd)}`)
  const digits = BigInt(whole + fraction)
  const shift = 12 - fraction.length + Number(exponent)
  return shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift)
}
