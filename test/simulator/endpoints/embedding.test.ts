import t from 'tap'
import { at, start } from '../start.ts'

t.test('an embedding is a unit vector that depends on the text, as floats or base64', async t => {
  const { post } = await start(t)
  const asked = { model: 'sim', input: ['abcd', 'abcde'], dimensions: 8 }
  const floats = await (await post('/v1/embeddings', asked)).json()
  t.match(floats, {
    object: 'list',
    data: [
      { object: 'embedding', index: 0 },
      { object: 'embedding', index: 1 },
    ],
    model: 'sim',
    usage: { prompt_tokens: 3, total_tokens: 3 },
  })
  const values = at(floats, 'data', 0, 'embedding') as number[]
  t.equal(values.length, 8)
  t.ok(Math.abs(values.reduce((sum, value) => sum + value * value, 0) - 1) < 1e-5)
  t.notSame(at(floats, 'data', 1, 'embedding'), values)
  const coded = await (await post('/v1/embeddings', { ...asked, encoding_format: 'base64' })).json()
  const bytes = Buffer.from(String(at(coded, 'data', 0, 'embedding')), 'base64')
  t.equal(bytes.length, 32)
  t.equal(bytes.readFloatLE(4), values[1])
})

t.test('a list of token numbers is one input; a list of lists of token numbers has several inputs', async t => {
  const { post } = await start(t)
  const one = await (await post('/v1/embeddings', { model: 'sim', input: [1, 2, 3], dimensions: 2 })).json()
  t.match(one, { data: { length: 1 }, usage: { prompt_tokens: 3 } })
  const two = await (
    await post('/v1/embeddings', { model: 'sim', input: [[1, 2], [3]], dimensions: 2 })
  ).json()
  t.match(two, { data: { length: 2 }, usage: { prompt_tokens: 3 } })
})
