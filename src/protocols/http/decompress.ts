import { CODINGS } from '../../base/content-codings.ts'

const MAX_DECOMPRESSED_BYTES = 8 * 1024 * 1024

/** Decompresses a small body synchronously. @param coding lower-case; null = not compressed @returns null = unknown coding, or too large */
export function decompressed(body: Buffer, coding: string | null): Buffer | 'broken' | null {
  if (coding === null) return body
  try {
    return CODINGS.get(coding)?.decodeSync(body, { maxOutputLength: MAX_DECOMPRESSED_BYTES }) ?? null
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? null : 'broken'
  }
}

/** Decompresses the body, or returns the body as it is if that fails. */
export function decompressedOrRaw(body: Buffer, coding: string | null): Buffer {
  const plain = decompressed(body, coding)
  return plain === null || plain === 'broken' ? body : plain
}
