import { CODINGS } from '../base/content-codings.ts'
import type { Compression, CapturedBody } from './transcript.ts'

/** Decompressed bytes after which counting stops. */
const MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024

/**
 * Decompresses a body. Returns it unchanged if it is not compressed as stated, or with an unknown coding.
 * @returns with the exact `total` if the whole body could be unpacked, and otherwise more than `bytes` has
 */
export async function decompressBody(text: CapturedBody, { encoding, limit }: Compression): Promise<CapturedBody> {
  const coding = CODINGS.get(encoding.trim().toLowerCase())
  if (coding === undefined) return text
  // A cut body is decompressed as far as possible.
  const decoder = coding.stream({ finishFlush: coding.truncatedFlush })
  const { contentType, bytes, total } = text
  const pieces: Buffer[] = []
  let size = 0
  let isWhole = bytes.length === total
  decoder.end(bytes)
  try {
    for await (const piece of decoder) {
      const room = limit - size
      if (room > 0) pieces.push((piece as Buffer).subarray(0, room))
      size += (piece as Buffer).length
      if (size <= MAX_DECOMPRESSED_BYTES) continue
      isWhole = false
      break
    }
  } catch {
    // The data before the damage is readable.
    if (size === 0) return text
    isWhole = false
  }
  return { contentType, bytes: Buffer.concat(pieces), total: isWhole ? size : Math.max(total, size + 1) }
}
