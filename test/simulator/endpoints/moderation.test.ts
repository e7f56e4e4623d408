import t from 'tap'
import { start } from '../start.ts'

t.test('a moderation flags no input', async t => {
  const { post } = await start(t)
  const body = await (await post('/v1/moderations', { input: ['a', 'b'] })).json()
  const result = { flagged: false, categories: { hate: false }, category_scores: { hate: Number } }
  t.match(body, { id: /^modr-/, model: String, results: [result, result] })
})
