import { CODINGS } from './content-codings.ts'

/** Bytes that a body may unpack to. */
const MAX_DECOMPRESSED_BYTES = 8 * 1024 * 1024

/**
 * A small body, decompressed at once; null where that is not tried to its end, as
 * its coding is not known here, or it is beyond reason.
 *
 * @param coding lower-case; null = it comes as it is
 */
export function decompressed(body: Buffer, coding: string | null): Buffer | 'broken' | null {
  if (coding === null) return body
  try {
    return CODINGS.get(coding)?.decodeSync(body, { maxOutputLength: MAX_DECOMPRESSED_BYTES }) ?? null
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? null : 'broken'
  }
}

/** What an upstream says in an error, to be read; where it cannot be decompressed, its bytes as they are. */
export function decompressedOrRaw(body: Buffer, coding: string | null): Buffer {
  const plain = decompressed(body, coding)
  return plain === null || plain === 'broken' ? body : plain
}
