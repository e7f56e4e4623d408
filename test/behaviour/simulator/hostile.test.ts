import fc from 'fast-check'
import t from 'tap'
import { start } from '../../simulator/start.ts'

const FIELDS = [
  'audio',
  'content',
  'contents',
  'dimensions',
  'encoding_format',
  'generationConfig',
  'include',
  'input',
  'instructions',
  'max_completion_tokens',
  'max_output_tokens',
  'max_tokens',
  'messages',
  'model',
  'n',
  'parts',
  'partial_images',
  'prompt',
  'reasoning',
  'reasoning_effort',
  'requests',
  'response_format',
  'role',
  'stream',
  'stream_format',
  'stream_options',
  'system',
  'systemInstruction',
  'thinking',
  'tool_choice',
  'toolConfig',
  'tools',
]

const PATHS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/responses/input_tokens',
  '/v1/embeddings',
  '/v1/images/generations',
  '/v1/images/edits',
  '/v1/audio/transcriptions',
  '/v1/audio/speech',
  '/v1/moderations',
  '/v1/files',
  '/v1/batches',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1beta/models/sim:generateContent',
  '/v1beta/models/sim:streamGenerateContent',
  '/v1beta/models/sim:countTokens',
  '/v1beta/models/sim:embedContent',
  '/v1beta/models/sim:batchEmbedContents',
]

const { value } = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(
      null,
      true,
      false,
      0,
      1,
      -1,
      1.5,
      1e21,
      '',
      'w3',
      'auto',
      'required',
      'any',
      'text',
      'assistant',
    ),
    fc.string(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom(...FIELDS, 'type', 'name', 'function', 'parameters', '__proto__'),
      tie('value'),
    ),
  ),
}))

t.test('the simulator responds to any body with 200 or with 400', async t => {
  const { post } = await start(t)
  const body = fc.dictionary(fc.constantFrom(...FIELDS), value)
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...PATHS), body, async (path, sent) => {
      const res = await post(path, sent)
      const text = await res.text()
      // The status is 400 if the model name contains a list of behaviours.
      return res.status === 200 || (res.status === 400 && text.includes('behaviour'))
    }),
    { numRuns: 600 },
  )
  t.pass('held')
})

t.test('a tool with a very deeply nested schema is called without arguments', async t => {
  const { post } = await start(t)
  let schema: object = { type: 'string' }
  for (let i = 0; i < 3000; i++) schema = { type: 'object', properties: { a: schema } }
  const tools = [{ type: 'function', function: { name: 'deep', parameters: schema } }]
  const res = await post('/v1/chat/completions', {
    model: 'sim',
    messages: [],
    tools,
    tool_choice: 'required',
  })
  t.equal(res.status, 200)
  t.match(await res.json(), { choices: [{ finish_reason: 'tool_calls' }] })
})

t.test('an error inside the simulator gives a response, and the next request works', async t => {
  let broken = true
  const now = () => {
    if (broken) throw new Error('no time')
    return 0
  }
  const { post } = await start(t, { now })
  const res = await post('/v1/messages', { model: 'sim', messages: [] })
  t.equal(res.status, 500)
  t.match(await res.json(), {
    type: 'error',
    error: { type: 'api_error', message: /failed: Error: no time/ },
  })
  broken = false
  t.equal((await post('/v1/messages', { model: 'sim', messages: [] })).status, 200)
})
