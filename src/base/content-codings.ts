import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'

export interface Coding {
  readonly stream: (options: { chunkSize?: number, finishFlush?: number }) => Transform
  readonly decodeSync: (body: Buffer, options: { maxOutputLength: number }) => Buffer
  /** The value of `finishFlush` that decodes a truncated body as far as possible. */
  readonly truncatedFlush: number
}

const { BROTLI_OPERATION_FLUSH, ZSTD_d_windowLogMax, ZSTD_e_flush, Z_SYNC_FLUSH } = zlib.constants

/** Limits the decoder's window to 8 MB (RFC 9659 section 3). The limit of zlib is 128 MB. */
const ZSTD = { params: { [ZSTD_d_windowLogMax]: 23 } }

const GZIP: Coding = { stream: zlib.createGunzip, decodeSync: zlib.gunzipSync, truncatedFlush: Z_SYNC_FLUSH }

/** The content codings that the gateway supports (RFC 9110 section 8.4.1, RFC 8878), by lower-case name. */
export const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  ['deflate', { stream: zlib.createInflate, decodeSync: zlib.inflateSync, truncatedFlush: Z_SYNC_FLUSH }],
  ['br', { stream: zlib.createBrotliDecompress, decodeSync: zlib.brotliDecompressSync, truncatedFlush: BROTLI_OPERATION_FLUSH }],
  ['zstd', {
    stream: options => zlib.createZstdDecompress({ ...ZSTD, ...options }),
    decodeSync: (body, options) => zlib.zstdDecompressSync(body, { ...ZSTD, ...options }),
    truncatedFlush: ZSTD_e_flush,
  }],
])
