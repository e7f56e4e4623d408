import { CODINGS } from '../protocols/http/content-codings.ts'
import type { Compression, CapturedBody } from './transcript.ts'

/** Bytes after which nobody counts how much more a body unpacks to. */
const MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024

/**
 * A compressed body as what it unpacks to; as it is where it is not what it says,
 * or in an unknown coding.
 *
 * @returns with a `total` that is exact where all of it could be unpacked, and else more than `bytes` has
 */
export async function decompressBody(text: CapturedBody, { encoding, limit }: Compression): Promise<CapturedBody> {
  const coding = CODINGS.get(encoding.trim().toLowerCase())
  if (coding === undefined) return text
  // What was cut is read as far as it goes.
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
    // What came before the damage can be read.
    if (size === 0) return text
    isWhole = false
  }
  return { contentType, bytes: Buffer.concat(pieces), total: isWhole ? size : Math.max(total, size + 1) }
}
