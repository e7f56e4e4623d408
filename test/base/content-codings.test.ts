import { once } from 'node:events'
import * as zlib from 'node:zlib'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { CODINGS } from '../../src/base/content-codings.ts'
import type { Coding } from '../../src/base/content-codings.ts'

const TEXT = Buffer.from('a text that is long enough to be compressed '.repeat(100))

/** Text compressed for a decoder that keeps a window of 2 ** log bytes. */
function zstdOf(log: number): Promise<Buffer> {
  const encoder = zlib.createZstdCompress({ params: { [zlib.constants.ZSTD_c_windowLog]: log } })
  encoder.write(TEXT)
  encoder.end()
  return buffer(encoder)
}

t.test('zstd with a window of 8 MB is decoded', async t => {
  const { stream, decodeSync } = CODINGS.get('zstd') as Coding
  const body = await zstdOf(23)
  t.strictSame(decodeSync(body, { maxOutputLength: 100_000 }), TEXT)
  const decoder = stream({})
  decoder.end(body)
  t.strictSame(await buffer(decoder), TEXT)
})

t.test('zstd with a window above 8 MB is refused', async t => {
  const { stream, decodeSync } = CODINGS.get('zstd') as Coding
  const body = await zstdOf(24)
  t.throws(() => decodeSync(body, { maxOutputLength: 100_000 }), { code: 'ZSTD_error_frameParameter_windowTooLarge' })
  const decoder = stream({})
  decoder.end(body)
  const [error] = await once(decoder, 'error')
  t.match(error, { code: 'ZSTD_error_frameParameter_windowTooLarge' })
})
