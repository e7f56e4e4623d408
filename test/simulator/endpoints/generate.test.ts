import t from 'tap'
import { at, gather, parseEvents, start } from '../start.ts'

const BODY = { contents: [{ role: 'user', parts: [{ text: '12345678' }] }] }

t.test('under each path prefix a response has the shape of the vendor', async t => {
  const { post } = await start(t)
  for (const prefix of ['/v1beta', '/v1alpha', '/v1']) {
    const res = await post(`${prefix}/models/sim,tokens=3:generateContent`, BODY)
    t.equal(res.status, 200)
    t.match(await res.json(), {
      candidates: [
        { content: { parts: [{ text: 'w1 w2 w3' }], role: 'model' }, finishReason: 'STOP', index: 0 },
      ],
      usageMetadata: {
        promptTokenCount: 2,
        candidatesTokenCount: 3,
        totalTokenCount: 5,
        promptTokensDetails: [{ modality: 'TEXT', tokenCount: 2 }],
      },
      modelVersion: 'sim,tokens=3',
      responseId: /^sim/,
    })
  }
})

t.test('the model in the path can be percent-encoded and can contain a colon', async t => {
  const { post } = await start(t)
  const encoded = await post('/v1beta/models/sim%2Ctokens%3D2:generateContent', BODY)
  t.match(await encoded.json(), { usageMetadata: { candidatesTokenCount: 2 }, modelVersion: 'sim,tokens=2' })
  const colon = await post('/v1beta/models/a:b,tokens=2:generateContent', BODY)
  t.match(await colon.json(), { modelVersion: 'a:b,tokens=2' })
  t.equal((await post('/v1beta/models/sim%ZZ:generateContent', BODY)).status, 400)
})

t.test('thoughts are counted separately from candidates, and returned only with includeThoughts', async t => {
  const { post } = await start(t)
  const path = '/v1beta/models/sim,tokens=2,cached=1:generateContent'
  const hidden = await post(path, { ...BODY, generationConfig: { thinkingConfig: { thinkingBudget: -1 } } })
  t.match(await hidden.json(), {
    candidates: [{ content: { parts: [{ text: 'w1 w2', thoughtSignature: /^\S+$/ }] } }],
    usageMetadata: {
      promptTokenCount: 2,
      cachedContentTokenCount: 1,
      candidatesTokenCount: 2,
      thoughtsTokenCount: 8,
      totalTokenCount: 12,
    },
  })
  const shown = await post(path, { ...BODY, generationConfig: { thinkingConfig: { includeThoughts: true } } })
  t.match(await shown.json(), {
    candidates: [
      { content: { parts: [{ text: 'r1 r2 r3 r4 r5 r6 r7 r8', thought: true }, { text: 'w1 w2' }] } },
    ],
  })
  const off = await post(path, { ...BODY, generationConfig: { thinkingConfig: { thinkingBudget: 0 } } })
  t.equal(at(await off.json(), 'usageMetadata', 'thoughtsTokenCount'), undefined)
})

t.test('the usage grows with each event of a stream, and only the last event has a finish reason', async t => {
  const { post } = await start(t)
  const res = await post('/v1beta/models/sim,tokens=3:streamGenerateContent?alt=sse', BODY)
  t.match(res.headers.get('content-type'), /^text\/event-stream/)
  const text = await res.text()
  t.notMatch(text, '[DONE]')
  t.notMatch(text, 'event:')
  const events = parseEvents(text)
  t.equal(gather(events, 'candidates', 0, 'content', 'parts', 0, 'text'), 'w1 w2 w3')
  t.same(
    events.map(event => at(event.data, 'usageMetadata', 'candidatesTokenCount')),
    [1, 2, 3, 3],
  )
  t.same(
    events.map(event => at(event.data, 'usageMetadata', 'totalTokenCount')),
    [3, 4, 5, 5],
  )
  t.same(
    events.map(event => at(event.data, 'candidates', 0, 'finishReason')),
    [undefined, undefined, undefined, 'STOP'],
  )
})

t.test('without alt=sse a stream is one JSON array', async t => {
  const { post } = await start(t)
  const res = await post('/v1beta/models/sim,tokens=2:streamGenerateContent', BODY)
  t.match(res.headers.get('content-type'), /^application\/json/)
  const chunks: unknown = await res.json()
  t.match(chunks, [
    { candidates: [{ content: { parts: [{ text: 'w1' }] } }] },
    { candidates: [{ content: { parts: [{ text: ' w2' }] } }] },
    { candidates: [{ finishReason: 'STOP' }], usageMetadata: { totalTokenCount: 4 } },
  ])
  const empty = await post('/v1beta/models/sim,tokens=0:streamGenerateContent', BODY)
  t.match(await empty.json(), [{ candidates: [{ finishReason: 'STOP' }] }])
})

t.test('candidateCount, maxOutputTokens and a prefill apply to the response', async t => {
  const { post } = await start(t)
  const body = {
    contents: [...BODY.contents, { role: 'model', parts: [{ text: 'w1 ' }] }],
    generationConfig: { candidateCount: 2, maxOutputTokens: 2 },
  }
  t.match(await (await post('/v1beta/models/sim:generateContent', body)).json(), {
    candidates: [
      { index: 0, content: { parts: [{ text: 'w2 w3' }] }, finishReason: 'MAX_TOKENS' },
      { index: 1, content: { parts: [{ text: 'w2 w3' }] } },
    ],
    usageMetadata: { candidatesTokenCount: 4 },
  })
})

t.test('with the mode ANY the response calls an allowed function', async t => {
  const { post } = await start(t)
  const body = {
    ...BODY,
    tools: [
      {
        functionDeclarations: [
          { name: 'first' },
          { name: 'second', parameters: { type: 'OBJECT', properties: { on: { type: 'BOOLEAN' } } } },
        ],
      },
    ],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['second'] } },
  }
  const call = { functionCall: { name: 'second', args: { on: true } }, thoughtSignature: /^\S+$/ }
  t.match(await (await post('/v1beta/models/sim:generateContent', body)).json(), {
    candidates: [{ content: { parts: [call] }, finishReason: 'STOP' }],
  })
  const events = parseEvents(
    await (await post('/v1beta/models/sim:streamGenerateContent?alt=sse', body)).text(),
  )
  t.match(events[0]?.data, { candidates: [{ content: { parts: [call] } }] })
})

t.test('names in snake_case are accepted, because the Python client sends them', async t => {
  const { post } = await start(t)
  const thoughtful = {
    ...BODY,
    generationConfig: { maxOutputTokens: 4, thinkingConfig: { include_thoughts: true, thinking_budget: -1 } },
  }
  t.match(await (await post('/v1/models/sim,reasoning=3,tokens=9:generateContent', thoughtful)).json(), {
    candidates: [{ content: { parts: [{ text: 'r1 r2 r3', thought: true }, { text: 'w1' }] } }],
  })
  const hasty = { ...BODY, generation_config: { thinking_config: { thinking_budget: 0 }, max_output_tokens: 2 } }
  const short = await (await post('/v1/models/sim:generateContent', hasty)).json()
  t.match(short, { candidates: [{ content: { parts: [{ text: 'w1 w2' }] }, finishReason: 'MAX_TOKENS' }] })
  t.equal(at(short, 'usageMetadata', 'thoughtsTokenCount'), undefined)
  const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] }
  const tools = [{ functionDeclarations: [{ name: 'add', parameters_json_schema: schema }] }]
  const tool_config = { function_calling_config: { mode: 'ANY', allowed_function_names: ['add'] } }
  t.match(await (await post('/v1/models/sim:generateContent', { ...BODY, tools, tool_config })).json(), {
    candidates: [{ content: { parts: [{ functionCall: { name: 'add', args: { a: 1 } } }] } }],
  })
  const embedded = await post('/v1/models/sim:embedContent', {
    content: { parts: [{ text: 'x' }] }, output_dimensionality: 3,
  })
  t.match(await embedded.json(), { embedding: { values: { length: 3 } } })
})

t.test('countTokens counts tokens, and embedContent and batchEmbedContents return vectors', async t => {
  const { post } = await start(t)
  const counted = await (await post('/v1beta/models/sim:countTokens', BODY)).json()
  t.match(counted, { totalTokens: 2, promptTokensDetails: [{ modality: 'TEXT', tokenCount: 2 }] })
  const content = { parts: [{ text: '12345678' }] }
  const one = await (
    await post('/v1beta/models/sim:embedContent', { content, outputDimensionality: 4 })
  ).json()
  const values = at(one, 'embedding', 'values')
  t.ok(Array.isArray(values) && values.length === 4)
  const requests = [{ content, outputDimensionality: 4 }, { content: { parts: [{ text: 'other' }] } }]
  const batch = await (await post('/v1beta/models/sim:batchEmbedContents', { requests })).json()
  t.same(at(batch, 'embeddings', 0, 'values'), values, 'the same text gets the same vector')
  t.equal(at(batch, 'embeddings', 1, 'values', 'length'), 768)
})

t.test('errors have the shape of the protocol, with the retry delay in header and body', async t => {
  const { post } = await start(t)
  const states = {
    400: 'INVALID_ARGUMENT',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    500: 'INTERNAL',
    503: 'UNAVAILABLE',
  }
  for (const [code, status] of Object.entries(states)) {
    const res = await post(`/v1beta/models/sim,status=${code}:generateContent`, BODY)
    t.equal(res.status, Number(code))
    t.match(await res.json(), { error: { code: Number(code), status, message: String } })
  }
  const limited = await post('/v1beta/models/sim,status=429,retry_after=7:generateContent', BODY)
  t.equal(limited.headers.get('retry-after'), '7')
  t.match(await limited.json(), {
    error: { status: 'RESOURCE_EXHAUSTED', details: [{ '@type': /RetryInfo$/, retryDelay: '7s' }] },
  })
})
