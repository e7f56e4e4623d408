import { createHash } from 'node:crypto'
import t from 'tap'
import { start } from '../start.ts'

t.test('on any other path of the API the response describes the request', async t => {
  const { url, post } = await start(t)
  t.match(await (await post('/v1/batches', { model: 'sim' })).json(), {
    object: 'simulated',
    method: 'POST',
    path: '/v1/batches',
    model: 'sim',
    bytes: 15,
  })
  t.match(await (await fetch(`${url}/v1/batches/b1`)).json(), {
    method: 'GET',
    path: '/v1/batches/b1',
    model: null,
  })
  t.equal((await post('/v1/batches', 'no json')).status, 200)
})

t.test('echo returns the complete request', async t => {
  const { post } = await start(t)
  const text = '{"model":"sim,echo","n":1.0,"big":12345678901234567890}'
  const res = await post('/v1/chat/completions?a=1&b=%20', text, { 'x-one': '1', authorization: 'Bearer k' })
  t.match(await res.json(), {
    object: 'echo',
    method: 'POST',
    target: '/v1/chat/completions?a=1&b=%20',
    path: '/v1/chat/completions',
    model: 'sim,echo',
    headers: { 'x-one': '1', authorization: 'Bearer k' },
    body_bytes: text.length,
    body_sha256: createHash('sha256').update(text).digest('hex'),
    body_base64: Buffer.from(text).toString('base64'),
  })
})

t.test('for a large body echo returns only the digest', async t => {
  const { post } = await start(t)
  const text = JSON.stringify({ model: 'sim,echo', pad: 'x'.repeat(1024 * 1024) })
  t.match(await (await post('/v1/chat/completions', text)).json(), {
    body_bytes: text.length,
    body_sha256: createHash('sha256').update(text).digest('hex'),
    body_base64: null,
  })
})
