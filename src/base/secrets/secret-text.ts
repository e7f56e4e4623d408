const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Decodes a secret from a file or a command, including UTF-16 of Windows. Removes white space around it.
 * @returns one character for each byte
 */
export function secretText(bytes: Buffer): string {
  return withoutMark(bytes).toString('latin1').trim()
}

function withoutMark(bytes: Buffer): Buffer {
  if (bytes.subarray(0, 3).equals(UTF8_MARK)) return bytes.subarray(3)
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return Buffer.from(bytes.toString('utf16le', 2))
  if (first === 0xfe && second === 0xff) return Buffer.from(Buffer.from(bytes.subarray(2, 2 + (bytes.length - 2 & ~1))).swap16().toString('utf16le'))
  return bytes
}
