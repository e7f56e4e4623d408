import fc from 'fast-check'
import t from 'tap'
import { BodyBuffer } from '../../../src/proxy/client/body-buffer.ts'

const MB = 1024 * 1024

/** Bytes that differ from place to place. */
function bytes(length: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, at) => at * 31 + (at >> 8)))
}

t.test('a buffer holds all bytes, for any declared length and chunk sizes', async () => {
  const source = bytes(3 * MB)
  const sizes = fc.array(fc.integer({ min: 0, max: 700_000 }), { maxLength: 8 })
  fc.assert(fc.property(fc.integer({ min: 0, max: 3 * MB }), sizes, (declared, sizes) => {
    const body = new BodyBuffer(declared)
    let at = 0
    for (const size of sizes) {
      const end = Math.min(source.length, at + size)
      body.push(source.subarray(at, end))
      at = end
    }
    return body.size === at && body.whole().equals(source.subarray(0, at))
  }), { numRuns: 200 })
})

t.test('a large body with a declared length is in memory only once', async t => {
  const source = bytes(64 * 1024)
  const body = new BodyBuffer(4 * MB)
  for (let i = 0; i < 64; i++) body.push(source)
  const whole = body.whole()
  t.equal(whole.length, 4 * MB)
  t.equal(whole.buffer.byteLength, 4 * MB)
  t.equal(body.whole().buffer, whole.buffer)
})

t.test('memory is allocated for the bytes received, not for the declared length', async t => {
  const before = process.memoryUsage().arrayBuffers
  const bodies = Array.from({ length: 20 }, () => {
    const body = new BodyBuffer(64 * MB)
    body.push(bytes(1024))
    return body
  })
  t.ok(process.memoryUsage().arrayBuffers - before < 10 * MB)
  t.equal(bodies[0]?.whole().length, 1024)
})
