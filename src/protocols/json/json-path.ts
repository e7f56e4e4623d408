/** Segments of a path in an error message. */
const MAX_SEGMENTS = 6
/** Characters of a key that are shown: clients may use any name. */
const MAX_KEY_LENGTH = 64

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The path of the value at an offset, in well-formed JSON: `tools[0].function.parameters`, cut after MAX_SEGMENTS. */
export function jsonPath(text: Buffer, offset: number): string {
  /** The index of the current element in each open container; null = the container is an object. */
  const indexes: (number | null)[] = []
  /** Bounds of the current key in each open object. */
  const keys: { readonly start: number, readonly end: number }[] = []
  let last = { start: 0, end: 0 }
  for (let at = 0; at < offset; at++) {
    const byte = text[at]
    const depth = indexes.length - 1
    if (byte === QUOTE) {
      const start = at + 1
      for (at = start; at < offset && text[at] !== QUOTE; at++) if (text[at] === BACKSLASH) at++
      last = { start, end: at }
    } else if (byte === 0x3a) {
      keys[depth] = last
    } else if (byte === 0x2c) {
      const index = indexes[depth]
      if (typeof index === 'number') indexes[depth] = index + 1
    } else if (byte === 0x7b || byte === 0x5b) {
      indexes.push(byte === 0x5b ? 0 : null)
    } else if (byte === 0x7d || byte === 0x5d) {
      indexes.pop()
    }
  }
  return indexes.slice(0, MAX_SEGMENTS).map((index, depth) => {
    if (index !== null) return `[${index}]`
    const { start = 0, end = 0 } = keys[depth] ?? {}
    return `${depth === 0 ? '' : '.'}${text.toString('utf8', start, Math.min(end, start + MAX_KEY_LENGTH))}`
  }).join('')
}
