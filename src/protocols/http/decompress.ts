import { CODINGS } from '../../base/content-codings.ts'

/** Maximum bytes of a decompressed body. */
const MAX_DECOMPRESSED_BYTES = 8 * 1024 * 1024

/**
 * Decompresses a small body synchronously; null = unknown coding, or too large.
 *
 * @param coding lower-case; null = not compressed
 */
export function decompressed(body: Buffer, coding: string | null): Buffer | 'broken' | null {
  if (coding === null) return body
  try {
    return CODINGS.get(coding)?.decodeSync(body, { maxOutputLength: MAX_DECOMPRESSED_BYTES }) ?? null
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? null : 'broken'
  }
}

/** The body of an upstream's error, for reading; unchanged if it cannot be decompressed. */
export function decompressedOrRaw(body: Buffer, coding: string | null): Buffer {
  const plain = decompressed(body, coding)
  return plain === null || plain === 'broken' ? body : plain
}
