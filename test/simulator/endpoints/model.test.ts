import t from 'tap'
import { start } from '../start.ts'

t.test('the list of models has the shape of the protocol that the headers or the path indicate', async t => {
  const { url } = await start(t)
  const get = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(url + path, { headers })).json()
  t.match(await get('/v1/models'), {
    object: 'list',
    data: [{ id: 'sim', object: 'model', created: Number, owned_by: String }],
  })
  t.match(await get('/v1/models', { 'anthropic-version': '2023-06-01' }), {
    data: [{ type: 'model', id: 'sim', display_name: String, created_at: /^\d{4}-.*Z$/ }],
    has_more: false,
    first_id: 'sim',
    last_id: String,
  })
  const gemini = { models: [{ name: 'models/sim', supportedGenerationMethods: Array }] }
  t.match(await get('/v1beta/models'), gemini)
  t.match(await get('/v1/models', { 'x-goog-api-key': 'k' }), gemini)
  t.match(await get('/v1/models?key=k'), gemini)
})

t.test('each model name is found', async t => {
  const { url } = await start(t)
  const get = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(url + path, { headers })).json()
  t.match(await get('/v1/models/gpt-x'), { id: 'gpt-x', object: 'model' })
  t.match(await get('/v1/models/org%2Fname'), { id: 'org/name' })
  t.match(await get('/v1/models/claude-x', { 'anthropic-version': '2023-06-01' }), {
    type: 'model',
    id: 'claude-x',
  })
  t.match(await get('/v1beta/models/gemini-x'), { name: 'models/gemini-x' })
})
