/** Maximum number of segments of a path in an error message. */
const MAX_SEGMENTS = 6
/** Maximum characters of a key in a path, because clients may use keys of any length. */
const MAX_KEY_LENGTH = 64

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The path of the value at an offset of well-formed JSON: `tools[0].function.parameters`. At most `MAX_SEGMENTS` segments. */
export function jsonPath(text: Buffer, offset: number): string {
  /** For each open container, the index of the current element; null = the container is an object. */
  const indexes: (number | null)[] = []
  /** For each open object, the bounds of the current key. */
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
