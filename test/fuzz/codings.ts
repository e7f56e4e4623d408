import { brotliCompressSync, brotliDecompressSync, constants, deflateSync, gunzipSync, gzipSync, inflateSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

const { BROTLI_OPERATION_FLUSH, BROTLI_PARAM_QUALITY, Z_SYNC_FLUSH, ZSTD_e_flush } = constants

/** Encodes as little as possible: most of these bytes are thrown away. Under other names than these they stay as they are. */
export function encodedAs(encoding: string, bytes: Buffer): Buffer {
  switch (encoding) {
    case 'gzip': return gzipSync(bytes, { level: 1 })
    case 'br': return brotliCompressSync(bytes, { params: { [BROTLI_PARAM_QUALITY]: 1 } })
    case 'deflate': return deflateSync(bytes, { level: 1 })
    case 'zstd': return zstdCompressSync(bytes)
    default: return bytes
  }
}

/** The bytes before their coding, as far as they came; null = they are not what the coding says. */
export function decodedAs(encoding: string | undefined, bytes: Buffer): Buffer | null {
  try {
    switch (encoding) {
      case 'gzip': return gunzipSync(bytes, { finishFlush: Z_SYNC_FLUSH })
      case 'br': return brotliDecompressSync(bytes, { finishFlush: BROTLI_OPERATION_FLUSH })
      case 'deflate': return inflateSync(bytes, { finishFlush: Z_SYNC_FLUSH })
      case 'zstd': return zstdDecompressSync(bytes, { finishFlush: ZSTD_e_flush })
      default: return bytes
    }
  } catch {
    return null
  }
}
