/**
 * The first offset in [from, to) whose byte is not plain text inside a JSON
 * string (RFC 8259, section 7): a quote, a backslash or a control character;
 * `to` when there is none. `view` covers the same bytes as `bytes`.
 *
 * Eight bytes are tested at a time, because strings of megabytes (images in
 * base64) are what large bodies are made of. With `x ^ 0x02` the quote falls
 * below 0x21 together with the control characters and no other byte does;
 * `(x - n) & ~x & 0x80` is set somewhere in the word exactly when a byte of x is
 * below n (n <= 0x80).
 */
export function endOfPlain(bytes: Uint8Array, view: DataView, from: number, to: number): number {
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

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** The text behind a byte order mark, which parsers may ignore (RFC 8259, section 8.1), as clients do. */
export function withoutMark(body: Buffer): Buffer {
  return body.subarray(0, 3).equals(BYTE_ORDER_MARK) ? body.subarray(3) : body
}
