import fc from 'fast-check'
import t from 'tap'
import { ChunkList } from '../../../src/proxy/http/chunk-list.ts'

t.test('concat returns all bytes in order, for any chunk sizes', async t => {
  fc.assert(fc.property(fc.array(
    fc.uint8Array({ maxLength: 5 }), { maxLength: 5_000, size: 'max' },
  ), parts => {
    const pieces = new ChunkList()
    for (const part of parts) pieces.push(Buffer.from(part))
    const all = Buffer.concat(parts)
    return pieces.concat().equals(all) && Buffer.concat([...pieces.list]).equals(all)
      && pieces.size === all.length
  }), { numRuns: 50 })
  t.pass()
})

t.test('single bytes are joined; large chunks are kept unchanged', async t => {
  const pieces = new ChunkList()
  for (let n = 0; n < 100_000; n++) pieces.push(Buffer.from('x'))
  t.ok(pieces.list.length < 2_000)
  const large = Buffer.alloc(64 * 1024)
  for (let n = 0; n < 2_000; n++) pieces.push(large)
  t.equal(pieces.list.at(-1), large)
  t.equal(pieces.size, 100_000 + 2_000 * large.length)
})

t.test('clear removes all chunks', async t => {
  const pieces = new ChunkList()
  pieces.push(Buffer.from('before'))
  pieces.clear()
  t.equal(pieces.size, 0)
  const only = Buffer.from('after')
  pieces.push(only)
  t.equal(pieces.concat(), only, 'a single piece is not copied')
})
