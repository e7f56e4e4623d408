import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import type { Packed, Text } from './transcript.ts'

const { BROTLI_OPERATION_FLUSH, ZSTD_e_flush, Z_SYNC_FLUSH } = zlib.constants

/** The codings of an answer (RFC 9110 section 8.4.1, RFC 8878). What was cut is read as far as it goes. */
const DECODERS = new Map<string, () => Transform>([
  ['gzip', () => zlib.createGunzip({ finishFlush: Z_SYNC_FLUSH })],
  ['x-gzip', () => zlib.createGunzip({ finishFlush: Z_SYNC_FLUSH })],
  ['deflate', () => zlib.createInflate({ finishFlush: Z_SYNC_FLUSH })],
  ['br', () => zlib.createBrotliDecompress({ finishFlush: BROTLI_OPERATION_FLUSH })],
  ['zstd', () => zlib.createZstdDecompress({ finishFlush: ZSTD_e_flush })],
])
/** Bytes after which nobody counts how much more a body unpacks to. */
const MOST = 64 * 1024 * 1024

/**
 * A compressed body as what it unpacks to; as it is where it is not what it says,
 * or in a coding that nobody knows.
 *
 * @returns with a `total` that is exact where all of it could be unpacked, and else more than `bytes` has
 */
export async function unpack(text: Text, { encoding, limit }: Packed): Promise<Text> {
  const decoder = DECODERS.get(encoding.trim().toLowerCase())?.()
  if (decoder === undefined) return text
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
      if (size <= MOST) continue
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
