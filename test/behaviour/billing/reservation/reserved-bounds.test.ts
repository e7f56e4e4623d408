import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { KEY } from '../../../support/gateway.ts'
import { generatedTokens } from '../../../support/lenient-server.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { openBooks } from '../books.ts'

/* What is reserved is what the request that is sent can cost: native or translated, at whichever target. */

const ASSUMED = 4096
const LIMITS = {
  'a budget': 'limits: { budget: { usd: 1, per: total } }',
  'a budget of the model': 'limits: { models: { "m*": { budget: { usd: 1, per: total } } } }',
  'tokens per minute': 'limits: { tokens_per_minute: 100000000 }',
  'a budget of its group': 'group: team',
}
const GROUPS = 'groups: { team: { limits: { budget: { usd: 1, per: total } } } }'

const TEXT = [{ role: 'user', content: 'hi' }]
const REQUESTS = {
  chat: { path: '/v1/chat/completions', body: { model: 'm', messages: TEXT } },
  completions: { path: '/v1/completions', body: { model: 'm', prompt: 'hi' } },
  responses: { path: '/v1/responses', body: { model: 'm', input: 'hi' } },
  messages: { path: '/v1/messages', body: { model: 'm', messages: TEXT } },
  generate: { path: '/v1beta/models/m:generateContent', body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] } },
} as const
type Protocol = keyof typeof REQUESTS

/** A whole response of a protocol that reports so many output tokens. */
function responseWith(path: string, tokens: number): object {
  if (path.includes('/messages')) {
    return { type: 'message', role: 'assistant', content: [{ type: 'text', text: 'x' }], usage: { input_tokens: 1, output_tokens: tokens } }
  }
  if (path.includes('Content')) {
    return {
      candidates: [{ content: { role: 'model', parts: [{ text: 'x' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: tokens, totalTokenCount: tokens + 1 },
    }
  }
  if (path.includes('/responses')) {
    return {
      object: 'response', status: 'completed', output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'x' }] }],
      usage: { input_tokens: 1, output_tokens: tokens },
    }
  }
  return { choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }], usage: { prompt_tokens: 1, completion_tokens: tokens } }
}

function protocolOf(path: string): Protocol {
  return path.includes('Content') ? 'generate'
    : path.includes('/messages') ? 'messages'
      : path.includes('/responses') ? 'responses' : path.includes('/chat') ? 'chat' : 'completions'
}

const SERVER = { anyName: true, wins: 'last', numbers: 'python' } as const

/** An upstream of any protocol that generates as much as the request allows. */
function startGreedy(t: Test, status = 200) {
  const seen: string[] = []
  return startUpstream(t, async (req, res) => {
    const text = (await bodyOf(req)).toString()
    seen.push(text)
    const path = req.url ?? ''
    const tokens = generatedTokens(protocolOf(path), text, SERVER, ASSUMED)
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(status === 200 ? responseWith(path, tokens) : { error: { message: 'no' } }))
  }).then(({ url }) => ({ url, seen }))
}

async function ask(url: string, key: string, path: string, body: string) {
  const response = await fetch(url + path, { method: 'POST', headers: { 'x-api-key': key, 'content-type': 'application/json' }, body })
  return { status: response.status, text: await response.text() }
}

const FREE = 'sk-free-0123456789abcdef'

function withMember(body: object, member: string): string {
  return `{${member},${JSON.stringify(body).slice(1)}`
}

const FAULTS: readonly (readonly [Protocol, member: string, named: string])[] = [
  ['chat', '"max_tokens":1000000.5', 'max_tokens'],
  ['chat', '"max_tokens":"1000000"', 'max_tokens'],
  ['chat', '"max_tokens":"1_000_000"', 'max_tokens'],
  ['chat', '"max_tokens":1e6', 'max_tokens'],
  ['chat', '"max_tokens":-1', 'max_tokens'],
  ['chat', '"max_tokens":5,"max_tokens":"1000000"', 'max_tokens'],
  ['chat', '"Max_Tokens":"1000000"', 'Max_Tokens'],
  ['chat', '"n":"50"', 'n'],
  ['chat', '"n":true', 'n'],
  ['chat', '"extra_body":{"max_tokens":"1000000"}', 'extra_body.max_tokens'],
  ['completions', '"best_of":"50"', 'best_of'],
  ['responses', '"max_output_tokens":"inf"', 'max_output_tokens'],
  ['messages', '"max_tokens":[1000000]', 'max_tokens'],
  ['messages', '"max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":"4000"}', 'thinking.budget_tokens'],
  ['generate', '"generationConfig":{"maxOutput_tokens":"1000000"}', 'generationConfig.maxOutput_tokens'],
  ['generate', '"generation_config":{"candidateCount":2.5}', 'generation_config.candidateCount'],
  ['generate', '"generationConfig":{"thinkingConfig":{"thinkingBudget":"9"}}', 'generationConfig.thinkingConfig.thinkingBudget'],
]

for (const [holder, limits] of Object.entries(LIMITS)) {
  t.test(`a key with ${holder} gets 400 for an ambiguous output bound`, async t => {
    const upstream = await startGreedy(t)
    const { gateway } = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${GROUPS}
keys: [{ name: limited, key: ${KEY}, ${limits} }, { name: free, key: ${FREE} }]
models: { m: { price: { input: 1, output: 1 } } }`)
    for (const [protocol, member, named] of FAULTS) {
      const { path, body } = REQUESTS[protocol]
      const text = withMember(body, member)
      const refused = await ask(gateway.url, KEY, path, text)
      t.equal(refused.status, 400, `${protocol} ${member}`)
      t.match(refused.text, `'${named}' must be a whole number`)
      t.strictSame(upstream.seen.splice(0), [])
      t.equal((await ask(gateway.url, FREE, path, text)).status, 200)
      t.strictSame(upstream.seen.splice(0), [text], 'for a key without limits the body is forwarded unchanged')
    }
  })
}

for (const resume of ['off', 'hold', 'continue', 'continue_or_hold'] as const) {
  t.test(`with resume: ${resume}, a stream reserves the output of each attempt that may continue the stream`, async t => {
    // It refuses all, which costs nothing.
    const upstream = await startGreedy(t, 400)
    const { gateway } = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: [{ upstream: up }, { upstream: up, model: n, prefill: true }], retries: 1, resume: ${resume} }]
billing: { assumed_output: ${ASSUMED} }
keys: [{ name: limited, key: ${KEY}, limits: { budget: { usd: 0.06, per: total } } }]
models: { m: { price: { input: 1, output: 10 } }, n: { price: { input: 1, output: 10 } } }`)
    // One part of a response without a bound costs 0.041 USD.
    const isEach = resume.startsWith('continue')
    for (const [protocol, more, passes] of [
      ['chat', { stream: true }, !isEach], ['chat', { stream: false }, true], ['chat', { stream: true, max_tokens: 2500 }, true], ['chat', { stream: true, max_tokens: 3000 }, !isEach],
      ['messages', { stream: true, max_tokens: 3000 }, !isEach], ['responses', { stream: true }, true],
    ] as const) {
      const { path, body } = REQUESTS[protocol]
      const { status } = await ask(gateway.url, KEY, path, JSON.stringify({ ...body, ...more, n: undefined }))
      t.equal(status !== 429, passes, `${protocol} ${JSON.stringify(more)}`)
    }
  })
}

t.test('the error for an ambiguous output bound has the shape of the protocol of the client', async t => {
  const upstream = await startGreedy(t)
  const { gateway } = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
limits: { budget: { usd: 1, per: total } }
models: { m: { price: { input: 1, output: 1 } } }`)
  const shapes = {
    chat: { error: { type: 'invalid_request_error', param: 'n', code: 'invalid_output_bound' } },
    responses: { error: { type: 'invalid_request_error', param: 'n' } },
    messages: { type: 'error', error: { type: 'invalid_request_error' } },
    generate: { error: { code: 400, status: 'INVALID_ARGUMENT' } },
  } as const
  for (const [protocol, shape] of Object.entries(shapes)) {
    const { path, body } = REQUESTS[protocol as keyof typeof shapes]
    const { text } = await ask(gateway.url, KEY, path, withMember(body, '"n":"5"'))
    t.match(JSON.parse(text), shape, protocol)
  }
})

for (const field of ['n', 'num_images', 'N']) {
  t.test(`the field ${field} of a form must be a whole number, and of two values the larger is reserved`, async t => {
    const upstream = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(() => res.setHeader('content-type', 'application/json').end('{"data":[{}]}'))
    })
    const { gateway } = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
limits: { budget: { usd: 30, per: total } }
models: { m: { price: { per_image: 1 } } }`)
    const edit = async (...values: string[]) => {
      const form = new FormData()
      form.set('model', 'm')
      for (const value of values) form.append(field, value)
      const response = await fetch(`${gateway.url}/v1/images/edits`, { method: 'POST', headers: { 'x-api-key': KEY }, body: form })
      return { status: response.status, text: await response.text() }
    }
    for (const value of ['5_0', ' 5', '5.0', '1e1', '-5']) {
      const { status, text } = await edit(value)
      t.equal(status, 400, value)
      t.match(text, `'${field}' must be`)
    }
    t.equal((await edit('50', '1')).status, 429, 'the larger of two values is reserved')
    t.equal((await edit('5')).status, 200)
  })
}

const PROTOCOLS = ['chat', 'responses', 'messages', 'generate'] as const
/** USD per million output tokens. */
const PRICES = { first: 1, second: 20 } as const

const BOUND = fc.option(fc.integer({ min: 1, max: 60_000 }), { nil: null })
const CASE = fc.record({
  from: fc.constantFrom(...PROTOCOLS), to: fc.tuple(fc.constantFrom(...PROTOCOLS), fc.constantFrom(...PROTOCOLS)),
  bound: BOUND, thinking: fc.option(fc.integer({ min: 1024, max: 20_000 }), { nil: null }), isFirstDown: fc.boolean(),
})

const BOUND_MEMBERS = { chat: 'max_completion_tokens', responses: 'max_output_tokens', messages: 'max_tokens', generate: 'maxOutputTokens' } as const

function requestOf(from: typeof PROTOCOLS[number], bound: number | null, thinking: number | null): string {
  const { body } = REQUESTS[from]
  const bounds = bound === null ? {} : { [BOUND_MEMBERS[from]]: bound }
  if (from === 'generate') {
    return JSON.stringify({ ...body, generationConfig: { ...bounds, ...thinking !== null && { thinkingConfig: { thinkingBudget: thinking } } } })
  }
  return JSON.stringify({ ...body, ...bounds, ...from === 'messages' && thinking !== null && { thinking: { type: 'enabled', budget_tokens: thinking } } })
}

for (const { from, to, bound, thinking, isFirstDown } of fc.sample(CASE, 12)) {
  const what = `${from} to ${to.join(', ')}, bound ${bound}, thinking ${thinking}${isFirstDown ? ', the first is down' : ''}`
  t.test(`simultaneous requests never cost more than the budget: ${what}`, async t => {
    const first = await startGreedy(t, isFirstDown ? 503 : 200)
    const second = await startGreedy(t)
    const books = await openBooks(t, `
upstreams:
  first: { url: "${first.url}", speaks: [${to[0]}] }
  second: { url: "${second.url}", speaks: [${to[1]}] }
routes: [{ to: [{ upstream: first, model: first }, { upstream: second, model: second }] }]
limits: { budget: { usd: 2, per: total } }
models: { first: { price: { input: 0, output: ${PRICES.first} } }, second: { price: { input: 0, output: ${PRICES.second} } } }`)
    await Promise.all(Array.from({ length: 10 }, () => ask(books.gateway.url, KEY, REQUESTS[from].path, requestOf(from, bound, thinking))))
    const rows = [...(await books.drain()).values()]
    const spent = rows.reduce((sum, { costPico }) => sum + (costPico ?? 0n), 0n)
    t.ok(spent <= 2_000_000_000_000n, String(spent))
  })
}

t.test('the reservation of a translated request uses the output bound that is sent upstream', async t => {
  const upstream = await startGreedy(t)
  const { gateway } = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}", speaks: [messages] } }
routes: [{ to: up }]
limits: { budget: { usd: 0.0319, per: total } }
models: { m: { price: { input: 0, output: 1 } } }`)
  const { path, body } = REQUESTS.chat
  const refused = await ask(gateway.url, KEY, path, JSON.stringify(body))
  t.equal(refused.status, 429, 'an Anthropic upstream gets max_tokens 32,000')
  t.equal((await ask(gateway.url, KEY, path, JSON.stringify({ ...body, max_tokens: 31_900 }))).status, 200)
})
