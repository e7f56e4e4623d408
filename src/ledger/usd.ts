const PICO_DIGITS = 12

/**
 * @param pico millionths of a millionth of a USD
 * @returns USD as a plain decimal, exact: `0.00066`, `12`, `-0.5`
 */
export function usd(pico: bigint): string {
  const digits = String(pico < 0n ? -pico : pico).padStart(PICO_DIGITS + 1, '0')
  const fraction = digits.slice(-PICO_DIGITS).replace(/0+$/, '')
  return `${pico < 0n ? '-' : ''}${digits.slice(0, -PICO_DIGITS)}${fraction === '' ? '' : `.${fraction}`}`
}
