import { gzipSync } from 'node:zlib'
import t from 'tap'
import { denialReason, refusalReason, retryDelay } from '../../../src/protocols/endpoint/refusal-reason.ts'
import type { RefusalReason } from '../../../src/protocols/endpoint/refusal-reason.ts'
import { start } from '../../simulator/start.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { openBooks } from '../../behaviour/billing/books.ts'
import { DIALECTS, WITH_STATUS, WORDS, ask, candidatesOf, everyWay } from '../../behaviour/failover/asking.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const TOO_LONG = '{"error":{"code":"context_length_exceeded"}}'

/** Error bodies of the vendors. */
const REFUSALS: readonly (readonly [string, 'context_length' | 'content_filter', number, object])[] = [
  ['openai', 'context_length', 400, {
    error: {
      message: "This model's maximum context length is 8192 tokens. "
        + 'However, your messages resulted in 9001 tokens.',
      type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded',
    },
  }],
  ['vllm', 'context_length', 400, {
    object: 'error', message: "This model's maximum context length is 4096 tokens.",
    type: 'BadRequestError', code: 400,
  }],
  ['llama.cpp', 'context_length', 400, {
    error: {
      code: 400, message: 'the request exceeds the available context size',
      type: 'exceed_context_size_error',
    },
  }],
  ['anthropic', 'context_length', 400, {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
  }],
  ['google', 'context_length', 400, {
    error: {
      code: 400, status: 'INVALID_ARGUMENT',
      message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    },
  }],
  ['azure', 'content_filter', 400, {
    error: {
      message: 'The response was filtered due to the prompt triggering '
        + "Azure OpenAI's content management policy.",
      type: null, param: 'prompt', code: 'content_filter', status: 400,
      innererror: { code: 'ResponsibleAIPolicyViolation' },
    },
  }],
  ['azure, by the inner error alone', 'content_filter', 400, {
    error: { innererror: { code: 'ResponsibleAIPolicyViolation' } },
  }],
  ['openai images', 'content_filter', 400, {
    error: { code: 'content_policy_violation', message: 'no', type: 'x' },
  }],
  ['anthropic', 'content_filter', 400, {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' },
  }],
  ['a moderator', 'content_filter', 403, {
    error: { code: 403, message: 'Your input was flagged', metadata: {} },
  }],
  ['xai', 'context_length', 400, {
    code: 'Client specified an invalid argument',
    error: "This model's maximum prompt length is 131072 but the request contains 181226 tokens.",
  }],
  ['moonshot', 'context_length', 400, {
    error: {
      message: 'Invalid request: Your request exceeded model token limit: 131072',
      type: 'invalid_request_error',
    },
  }],
  ['qwen', 'context_length', 400, {
    error: {
      message: '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]',
      type: 'invalid_request_error', param: null, code: 'invalid_parameter_error',
    },
  }],
  ['text-generation-inference', 'context_length', 422, {
    error: 'Input validation error: `inputs` must have less than 4095 tokens. Given: 8000',
    error_type: 'validation',
  }],
  ['together', 'context_length', 422, {
    error: {
      message: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. '
        + 'Given: 5184 `inputs` tokens and 100 `max_new_tokens`',
      type: 'invalid_request_error', param: null, code: null,
    },
  }],
  ['github models', 'context_length', 413, {
    error: {
      code: 'tokens_limit_reached', message: 'Request body too large for gpt-4o model. Max size: 8000 tokens.',
    },
  }],
  ['vertex', 'context_length', 400, {
    error: {
      code: 400, status: 'INVALID_ARGUMENT',
      message: 'Unable to submit request because the input token count is 1234567 but model only '
        + 'supports up to 1048576. Reduce the input token count and try again.',
    },
  }],
  ['xai', 'content_filter', 403, {
    code: 'The caller does not have permission to execute the specified operation',
    error: 'Content violates usage guidelines. Team: x, Failed check: SAFETY_CHECK_TYPE_BIO',
  }],
  ['qwen', 'content_filter', 400, {
    error: {
      message: '<400> InternalError.Algo.DataInspectionFailed: Input data may contain inappropriate content.',
      type: 'data_inspection_failed', param: null, code: 'data_inspection_failed',
    },
  }],
  ['deepseek', 'content_filter', 400, {
    error: {
      message: 'Content Exists Risk', type: 'invalid_request_error', param: null,
      code: 'invalid_request_error',
    },
  }],
  ['a stream that is an array', 'context_length', 400, [
    { error: { message: 'input is too long for this model' } },
  ]],
]

for (const [whose, reason, , body] of REFUSALS) {
  t.test(`${reason} is recognized in an error of ${whose}`, t => {
    t.equal(refusalReason(Buffer.from(JSON.stringify(body))), reason)
    t.end()
  })
}

t.test('refusalReason is null for an unreadable error or another cause', t => {
  for (const body of [
    '{"error":{"message":"Unknown model","type":"invalid_request_error","code":"model_not_found"}}',
    '{"error":{"message":"temperature must be at most 2","type":"invalid_request_error","code":null}}',
    '{"error":{"message":"max_tokens: 200000 > 8192, which is the maximum allowed number of output tokens"}}',
    '{"error":{"message":"`inputs` must be a string"}}', '{"error":{"message":"max_tokens exceeds the limit"}}',
    '{"error":{"code":"constructor","type":"__proto__"}}',
    '{"error":null}', '{"error":7}', '{"error":{"message":{}}}', '[]', '[null]', 'null', '7', '""', '',
    '<html>prompt is too long</html>', '{"error":{"message":"prompt is too lo',
  ]) t.equal(refusalReason(Buffer.from(body)), null, body)
  for (const message of [
    'Your account (ops@example.com) has been flagged for abuse', 'The API key sk-a...z was flagged as leaked',
    'Your organization org-1234 has been temporarily flagged by our systems',
  ]) t.equal(refusalReason(Buffer.from(JSON.stringify({ error: { message } }))), null, message)
  t.end()
})

t.test('the retry delay is read from an error in the format of Gemini', t => {
  const said = (retryDelay: unknown) => {
    const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }
    return Buffer.from(JSON.stringify({ error: { code: 429, details: [null, info] } }))
  }
  for (const [text, ms] of [
    ['34s', 34_000], ['0.5s', 500], ['1.5', null], ['-1s', null], ['s', null], [3, null],
  ] as const) {
    t.equal(retryDelay(said(text)), ms, String(text))
  }
  for (const body of ['', '{}', '{"error":{"details":{}}}', '{"error":{"details":["34s"]}}']) {
    t.equal(retryDelay(Buffer.from(body)), null, body)
  }
  t.end()
})

for (const [whose, reason, status, body] of REFUSALS) {
  everyWay(t, `a refusal with ${reason} (${whose}) is retried at the target of on.${reason}`, async (t, dialect, stream) => {
    const upstream = await startUpstream(t, (_req, res) => {
      res.writeHead(status, JSON_TYPE).end(JSON.stringify(body))
    })
    const { url, simulator } = await start(t)
    const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}" }, b: { url: "${url}" }, large: { url: "${url}" } }
routes:
  - to: [a, { upstream: b, model: "sim,status=500" }]
    on: { ${reason}: { upstream: large, model: sim } }
`)
    const answer = await ask(gateway, dialect, { stream })
    t.match(answer, { status: 200, text: WORDS })
    t.equal(answer.headers.get('x-gateway-upstream'), 'large')
    t.equal(answer.headers.get('x-gateway-attempts'), '2')
    t.equal(simulator.stats.requests, 1, 'the other target is not tried')
  })
}

t.test('a refusal whose reason has no target in `on` goes to the client', async t => {
  const { url, simulator } = await start(t)
  const tooLong = await startUpstream(t, (_req, res) => {
    res.writeHead(400, JSON_TYPE).end(TOO_LONG)
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${tooLong.url}" }, b: { url: "${url}" } }
routes: [{ to: a, on: { content_filter: b } }]
`)
  const answer = await ask(gateway, DIALECTS[0]!)
  t.match(answer, { status: 400, body: TOO_LONG })
  t.equal(simulator.stats.requests, 0)
})

t.test('a 403 for flagged input does not count as a refused credential, and the client gets the 403', async t => {
  const flagged = '{"error":{"message":"Your input was flagged by moderation","code":403}}'
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(403, JSON_TYPE).end(flagged)
  })
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}" }, b: { url: "${url}" } }
routes:
  - { model: alone, to: a }
  - { to: a, on: { content_filter: { upstream: b, model: "sim,reset" } } }
`)
  for (const model of ['alone', 'elsewhere']) {
    t.match(await ask(gateway, DIALECTS[0]!, { model }), { status: 403, body: flagged }, model)
    await gateway.waitForLog(line => line['msg'] === 'exchange' && line['model'] === model)
  }
  t.notOk(gateway.logged.some(({ msg }) => /credential/.test(String(msg))))
})

/** Error bodies of the vendors that do not mean a rejected credential. */
const DENIALS: readonly (readonly [string, RefusalReason, number, object])[] = [
  ['a project without the model (OpenAI)', 'model_access', 403, {
    error: {
      message: 'Project `proj_1` does not have access to model `gpt-4o`', type: 'invalid_request_error',
      param: null, code: 'model_not_found',
    },
  }],
  ['an organization that is not verified (OpenAI)', 'model_access', 403, {
    error: {
      message: 'Your organization must be verified to use the model `gpt-image-1`. Please go to: '
        + 'https://platform.openai.com/settings/organization/general and click on Verify Organization.',
      type: 'invalid_request_error', param: null, code: null,
    },
  }],
  ['a country (OpenAI)', 'region', 403, {
    error: {
      code: 'unsupported_country_region_territory', message: 'Country, region, or territory not supported',
      param: null, type: 'request_forbidden',
    },
  }],
  ['a blocked model (Groq)', 'model_access', 403, {
    error: {
      message: 'The model `x` is blocked at the project level.', type: 'permissions_error',
      code: 'model_permission_blocked_project',
    },
  }],
  ['a model without access (GitHub)', 'model_access', 401, {
    error: { code: 'no_access', message: 'No access to model: openai/o1' },
  }],
  ['a model without access (Bedrock)', 'model_access', 403, {
    message: "You don't have access to the model with the specified model ID.",
  }],
  ['a region (OpenRouter)', 'region', 403, {
    error: { code: 403, message: 'This model is not available in your region.' },
  }],
  ['a moderator, unusually', 'content_filter', 401, { error: { message: 'Your input was flagged' } }],
]

for (const [what, reason, status, body] of DENIALS) {
  t.test(`${what}: a ${status} does not count as a refused credential, and the client gets the error`, async t => {
    const text = JSON.stringify(body)
    t.equal(denialReason(Buffer.from(text)), reason)
    for (const coding of ['identity', 'gzip'] as const) {
      const upstream = await startUpstream(t, (_req, res) => {
        res.writeHead(status, { ...JSON_TYPE, ...coding === 'gzip' && { 'content-encoding': coding } })
          .end(coding === 'gzip' ? gzipSync(text) : text)
      })
      const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}" }, b: { url: "${upstream.url}" } }
routes: [{ model: alone, to: a }, { to: [a, b] }]
`)
      for (const model of ['alone', 'two']) {
        t.match(await ask(gateway, DIALECTS[0]!, { model }), { status, body: text }, `${model}, ${coding}`)
        t.match(await gateway.waitForLog(line => line['msg'] === 'exchange' && line['model'] === model), {
          status, end: 'error',
        })
      }
      t.notOk(gateway.logged.some(({ msg }) => /credential/.test(String(msg))))
    }
  })
}

t.test('denialReason is null for an error about the credential or without a reason', t => {
  for (const error of [
    { message: 'Your API key does not have access to model `gpt-4o`', code: 'model_not_found' },
    { message: 'The token has no access: no access to model x', code: 'no_access' },
    { message: 'Your API key does not have permission to use it.', type: 'permission_error' },
    { message: 'Virtual key sk-...1234 does not have access to model x', code: 'model_not_found' },
    { message: 'No access to model: x', code: 'no_access', details: { api_key: 'sk-...1234' } },
    { message: 'No access to model: x', detail: 'The secret sk-...1234 has no such scope.' },
    { message: 'Incorrect API key provided: sk-...1234', code: 'invalid_api_key' },
    { message: 'Request not allowed', type: 'forbidden' },
    { message: 'You are not a member of an organization', code: null }, { message: 7, code: 7 }, {},
    { message: 'no access to model x', type: 'invalid_api_key', code: 'model_not_found' },
    { message: 'no access to model x', type: 'INVALID_APIKEY', code: 'model_not_found' },
    { message: 'no access to model x', type: 'InvalidApiKey', code: 'model_not_found' },
    { message: 'no access to model x', type: 'AccessTokenExpired', code: 'model_not_found' },
    { message: 'no access to model x', code: 'model_not_found', x_token_id: 7 },
  ]) t.equal(denialReason(Buffer.from(JSON.stringify({ error }))), null, JSON.stringify(error))
  for (const text of ['', '{"error":{"code":"model_not_fou', '<html>no access to model x</html>']) {
    t.equal(denialReason(Buffer.from(text)), null, text)
  }
  t.end()
})

t.test('a 401 whose body does not arrive counts as a refused credential after a wait', async t => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(401, JSON_TYPE).write('{"error":{"code":"model_not_found"')
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
`)
  t.match(await ask(gateway, DIALECTS[0]!), { status: 502, body: /upstream_rejected_key/ })
})

t.test('a 403 for a flagged account counts as a refused credential, and the client gets 502', async t => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(403, JSON_TYPE).end('{"error":{"message":"Your account was flagged for potential abuse"}}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
`)
  const { status, body } = await ask(gateway, DIALECTS[0]!)
  t.equal(status, 502)
  t.notMatch(body, 'flagged')
  await gateway.waitForLog(({ msg }) => /credential/.test(String(msg)))
})

t.test('a target of `on` that refuses for the same reason is not tried again', async t => {
  let asked = 0
  const tooLong = await startUpstream(t, (_req, res) => {
    asked++
    res.writeHead(400, JSON_TYPE).end(`{"error":{"code":"context_length_exceeded","n":${asked}}}`)
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${tooLong.url}" } }
routes: [{ to: a, on: { context_length: { upstream: a, model: large } } }]
`)
  const answer = await ask(gateway, DIALECTS[0]!)
  t.match(answer, { status: 400, body: '{"error":{"code":"context_length_exceeded","n":2}}' })
  t.equal(asked, 2)
})

t.test('the target of on.context_length can refuse by content_filter, and then the target of on.content_filter is tried', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    const code = req.url?.startsWith('/one') ? 'context_length_exceeded' : 'content_filter'
    res.writeHead(400, JSON_TYPE).end(JSON.stringify({ error: { code } }))
  })
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}/one" }, b: { url: "${upstream.url}/two" }, c: { url: "${url}" } }
routes: [{ to: a, on: { context_length: b, content_filter: { upstream: c, model: sim } } }]
`)
  const answer = await ask(gateway, DIALECTS[0]!)
  t.match(answer, { status: 200, text: WORDS })
  t.equal(answer.headers.get('x-gateway-attempts'), '3')
})

t.test('a refusal does not count as a failure, so the circuit stays closed', async t => {
  const tooLong = await startUpstream(t, (_req, res) => {
    res.writeHead(400, JSON_TYPE).end(TOO_LONG)
  })
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${tooLong.url}" }, b: { url: "${url}" } }
routes:
  - to: [a, { upstream: b, model: sim }]
    on: { context_length: { upstream: b, model: "sim,status=400" } }
`)
  for (let n = 0; n < 8; n++) {
    const answer = await ask(gateway, DIALECTS[0]!)
    t.equal(answer.status, 400)
    t.equal(answer.headers.get('x-gateway-attempts'), '2', 'the first target and then the second are tried')
  }
})

t.test('a 403 for flagged input does not open the circuit', async t => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(403, JSON_TYPE).end('{"error":{"message":"Your input was flagged by a moderator"}}')
  })
  const books = await openBooks(t, `${WITH_STATUS}
upstreams: { a: { url: "${upstream.url}" }, b: { url: "${upstream.url}" } }
routes: [{ model: alone, to: a }, { to: [a, b] }]
`)
  for (let n = 0; n < 4; n++) {
    for (const model of ['alone', 'two']) {
      t.match(await ask(books.gateway, DIALECTS[0]!, { model }), { status: 403 })
    }
  }
  const conditions = await candidatesOf(books.gateway)
  t.match(conditions, Array.from({ length: 3 }, () => ({ circuit: 'closed', in_flight: 0 })))
  const attempts = [...(await books.drain()).values()].flatMap(row => row.attempts)
  t.match(attempts, Array.from({ length: 12 }, () => ({ outcome: 'error_answer', status: 403 })))
})
