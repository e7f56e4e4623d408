/**
 * Finds the first byte in [from, to) that is a quote, a backslash or a control character (RFC 8259, section 7). Tests eight bytes at a
 * time, because most bytes of large bodies are base64. `x ^ 0x02` moves only the quote below 0x21, where the control characters are. `(x -
 * n) & ~x & 0x80` is set in some byte of the word exactly if a byte of x is below n (n <= 0x80).
 * @param view covers the same bytes as `bytes`
 * @returns the offset of the byte; `to` = there is no such byte
 */
export function endOfPlainText(bytes: Uint8Array, view: DataView, from: number, to: number): number {
  let i = from
  for (const last = to - 8; i <= last; i += 8) {
    const a = view.getInt32(i)
    const b = view.getInt32(i + 4)
    const quoteA = a ^ 0x02020202
    const quoteB = b ^ 0x02020202
    const slashA = a ^ 0x5c5c5c5c
    const slashB = b ^ 0x5c5c5c5c
    const found = ((quoteA - 0x21212121) & ~quoteA) | ((slashA - 0x01010101) & ~slashA)
      | ((quoteB - 0x21212121) & ~quoteB) | ((slashB - 0x01010101) & ~slashB)
    if ((found & 0x80808080) !== 0) break
  }
  while (i < to) {
    const byte = bytes[i]!
    if (byte === 0x22 || byte === 0x5c || byte < 0x20) break
    i++
  }
  return i
}

const BACKSLASH = 0x5c
const LOWER_U = 0x75
/** Decoded characters of one-letter escapes (RFC 8259, section 7). */
const ESCAPES = new Map(
  [['"', '"'], ['\\', '\\'], ['/', '/'], ['b', '\b'], ['f', '\f'], ['n', '\n'], ['r', '\r'], ['t', '\t']]
    .map(([letter = '', meant = '']) => [letter.charCodeAt(0), meant.charCodeAt(0)]),
)

/**
 * Tells whether the content of a JSON string equals `name` (UTF-8). The content may have escapes. Creates no strings, because a body can
 * have millions of keys.
 * @param anyCase true if ASCII capitals match the lower-case letters of the name
 */
export function matchesName(bytes: Buffer, start: number, end: number, name: Uint8Array, anyCase = false): boolean {
  let at = start
  let n = 0
  while (at < end) {
    if (n === name.length) return false
    let byte = bytes[at++]!
    if (byte === BACKSLASH) {
      const escape = bytes[at++]!
      if (escape === LOWER_U) {
        byte = hexUnit(bytes, at)
        at += 4
        if (byte >= 0x80) return name[n]! >= 0x80 && decoded(bytes, start, end).equals(name)
      } else {
        byte = ESCAPES.get(escape) ?? -1
      }
    }
    if (byte !== name[n] && !(anyCase && isCapital(byte) && byte + 0x20 === name[n])) return false
    n++
  }
  return n === name.length
}

function decoded(bytes: Buffer, start: number, end: number): Buffer {
  // The key is parsed alone, because V8 can misread escaped keys inside objects (nodejs/node#63785).
  return Buffer.from(JSON.parse(`"${bytes.toString('utf8', start, end)}"`) as string)
}

function isCapital(unit: number): boolean {
  return unit >= 0x41 && unit <= 0x5a
}

/** The UTF-16 unit of four hexadecimal digits; -1 = the bytes are not hexadecimal. */
export function hexUnit(bytes: Uint8Array, at: number): number {
  let unit = 0
  for (let i = at; i < at + 4; i++) {
    const byte = bytes[i]!
    const lower = byte | 0x20
    if (byte >= 0x30 && byte <= 0x39) unit = unit * 16 + byte - 0x30
    else if (lower >= 0x61 && lower <= 0x66) unit = unit * 16 + lower - 0x57
    else return -1
  }
  return unit
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** The text without a byte order mark, which parsers may ignore (RFC 8259, section 8.1). Clients ignore it. */
export function withoutByteOrderMark(body: Buffer): Buffer {
  return body.subarray(0, 3).equals(BYTE_ORDER_MARK) ? body.subarray(3) : body
}

/**
 * Tells whether the body begins with an object or an array. White space in front is skipped: some upstreams send blank lines until the
 * response is ready.
 */
export function beginsJson(body: Buffer): boolean {
  const first = firstByte(body)
  return first === 0x7b || first === 0x5b
}

export function isBlank(body: Buffer): boolean {
  return firstByte(body) === undefined
}

/** The first byte after a byte order mark and white space (RFC 8259, section 2); undefined = there is none. */
function firstByte(body: Buffer): number | undefined {
  const text = withoutByteOrderMark(body)
  let at = 0
  while (text[at] === 0x0a || text[at] === 0x20 || text[at] === 0x0d || text[at] === 0x09) at++
  return text[at]
}
