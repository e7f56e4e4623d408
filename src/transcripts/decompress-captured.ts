import { CODINGS } from '../base/content-codings.ts'
import type { Compression, CapturedBody } from './transcript.ts'

/** Maximum decompressed bytes. The rest of a longer body is not decompressed. */
const MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024

/**
 * Decompresses a body. A body with an unknown coding, or that is not compressed as its coding says, is returned unchanged.
 * @returns `total`: exact if the whole body was decompressed; otherwise larger than the length of `bytes`
 */
export async function decompressBody(text: CapturedBody, { encoding, limit }: Compression): Promise<CapturedBody> {
  const coding = CODINGS.get(encoding.trim().toLowerCase())
  if (coding === undefined) return text
  // Decompress an incomplete body as far as possible.
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
    // Keep the bytes before the damage.
    if (size === 0) return text
    isWhole = false
  }
  return { contentType, bytes: Buffer.concat(pieces), total: isWhole ? size : Math.max(total, size + 1) }
}
