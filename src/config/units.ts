const MS_PER_UNIT = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const BYTES_PER_UNIT = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 } as const

/** Parses `250ms`, `10s`, `30m`, `1.5h` or `400d`. @returns whole ms @throws RangeError */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? []
  if (amount === undefined) throw new RangeError('a duration is written like 250ms, 10s, 30m, 1h or 400d')
  return toSafeInteger(Number(amount) * MS_PER_UNIT[unit as keyof typeof MS_PER_UNIT])
}

/** Parses `512kb`, `64mb`, `1gb` or a number. 1mb is 1024 * 1024 bytes. @returns bytes @throws RangeError */
export function parseSize(size: string | number): number {
  if (typeof size === 'number') return toSafeInteger(size)
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([kmg]?)b$/.exec(size.toLowerCase()) ?? []
  if (amount === undefined) throw new RangeError('a size is written like 512kb, 64mb or 1gb')
  return toSafeInteger(Number(amount) * BYTES_PER_UNIT[unit as keyof typeof BYTES_PER_UNIT])
}

function toSafeInteger(amount: number): number {
  const rounded = Math.round(amount)
  if (!Number.isSafeInteger(rounded)) throw new RangeError('that is too large a number')
  return rounded
}
