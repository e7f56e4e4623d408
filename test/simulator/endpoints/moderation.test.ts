import t from 'tap'
import { start } from '../start.ts'

t.test('no input is flagged', async t => {
  const { post } = await start(t)
  const body = await (await post('/v1/moderations', { input: ['a', 'b'] })).json()
  const result = { flagged: false, categories: { hate: false }, category_scores: { hate: Number } }
  t.match(body, { id: /^modr-/, model: String, results: [result, result] })
})
