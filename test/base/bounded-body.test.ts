import t from 'tap'
import { boundedBody } from '../../src/base/bounded-body.ts'
import { startUpstream } from '../support/upstream.ts'

t.test('a body is read up to its bound', async t => {
  const { url } = await startUpstream(t, (_, res) => { res.end('x'.repeat(1_000)) })
  const read = async (maxBytes: number) => boundedBody((await fetch(url)).body, maxBytes)
  t.equal((await read(1_000))?.toString(), 'x'.repeat(1_000))
  t.equal(await read(999), null)
  t.equal((await boundedBody(null, 0))?.length, 0, 'a response without a body')
})

t.test('a body that never ends is cancelled at its bound', async t => {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const { url } = await startUpstream(t, (_, res) => {
    res.on('close', () => resolve())
    res.write('x'.repeat(1_000))
  })
  t.equal(await boundedBody((await fetch(url)).body, 500), null)
  await closed
})
