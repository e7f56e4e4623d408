import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { costOf, openBooks, priced } from './books.ts'
import type { Books } from './books.ts'

const EVENTS = 'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'

/** A gateway with an upstream whose streams are always compressed. */
async function setUp(t: Test, yaml: string): Promise<Books> {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      res.end(gzipSync(EVENTS))
    })
  })
  return openBooks(t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\n${yaml}`)
}

async function ask({ gateway }: Books): Promise<number> {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'm', stream: true, max_tokens: 600, messages: [{ role: 'user', content: 'hello' }],
    }),
  })
  await answer.text()
  return answer.status
}

for (const limit of ['tokens_per_minute: 1000', 'budget: { usd: 0.02, per: total }']) {
  t.test(`a response that is forwarded unread has an unknown cost, and its reservation is charged: ${limit}`, async t => {
    const books = await setUp(t, `limits: { ${limit} }\n${priced('m')}`)
    t.equal(await ask(books), 200)
    await books.gateway.waitForLog(line => line.msg === 'exchange')
    t.equal(await ask(books), 429, 'the reservation is charged')
    const rows = [...(await books.close()).values()]
    t.match(rows[0], { end: 'complete', usage: { inputTokens: 8, outputTokens: null }, costPico: null })
  })
}

t.test('if the price is per request only, the cost of an unread response is known', async t => {
  const books = await setUp(t, 'models: { m: { price: { per_request: 0.5 } } }')
  t.equal(await ask(books), 200)
  const [row] = [...(await books.close()).values()]
  t.equal(row?.costPico, 500_000_000_000n)
})

for (const [verb, query, headers] of [
  ['generateContent', '?fields=candidates', {}],
  ['generateContent', '?%24fields=candidates,usageMetadata.promptTokenCount', {}],
  ['generateContent', '', { 'x-goog-fieldmask': 'candidates' }],
  ['streamGenerateContent', '?alt=sse&fields=candidates.content', {}],
] as const) {
  t.test(`if a field mask excludes the usage, the cost is unknown: ${verb}${query}`, async t => {
    const part = '{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}'
    const isStream = verb === 'streamGenerateContent'
    const upstream = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(() => {
        res.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json')
        res.end(isStream ? `data: ${part}\n\n` : part)
      })
    })
    const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
limits: { tokens_per_minute: 1000 }
${priced('m')}`)
    const ask = () => fetch(`${books.gateway.url}/v1beta/models/m:${verb}${query}`, {
      method: 'POST',
      headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json', ...headers },
      body: '{"contents":[{"parts":[{"text":"hello"}]}],"generationConfig":{"maxOutputTokens":600}}',
    })
    t.match(await (await ask()).text(), /"hi"/)
    await books.gateway.waitForLog(line => line.msg === 'exchange')
    t.equal((await ask()).status, 429, 'the reservation is charged')
    t.match([...(await books.close()).values()][0], {
      end: 'complete', usage: { outputTokens: null }, costPico: null,
    })
  })
}

t.test('the usage is read if the field mask includes the usage', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => res.setHeader('content-type', 'application/json').end(
      '{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],'
      + '"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1,"totalTokenCount":8}}'))
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${priced('m')}`)
  const masks = ['fields=candidates,usageMetadata', 'fields=usageMetadata,*', 'fields=', 'fields=&$fields=']
  for (const mask of masks) {
    const answer = await fetch(`${books.gateway.url}/v1beta/models/m:generateContent?${mask}`, {
      method: 'POST', headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' }, body: '{}',
    })
    await answer.text()
  }
  const rows = [...(await books.close()).values()]
  t.strictSame(rows.map(({ usage }) => [usage.inputTokens, usage.outputTokens]), masks.map(() => [7, 1]))
})

const CHAT = '{"choices":[{"delta":{"content":"hi"},"message":{"content":"hi"},"finish_reason":"stop"}]'
const USED = { input: 7, output: 1 }
const CHAT_USAGE = ',"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}'
const PART = '{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]'
const PART_USAGE = ',"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1,"totalTokenCount":8}}'
for (const [path, query, headers, isIgnored] of [
  ['/v1beta/models/m:generateContent', '?fields=candidates', {}, true],
  ['/v1beta/models/m:generateContent', '', { 'x-goog-fieldmask': 'candidates.content' }, true],
  ['/v1beta/models/m:streamGenerateContent', '?alt=sse&fields=candidates', {}, true],
  ['/v1beta/models/m:streamGenerateContent', '?alt=sse&$fields=candidates', {}, false],
  ['/v1beta/models/m:generateContent', '?fields=candidates,usageMetadata(promptTokenCount)', {}, false],
  ['/v1beta/models/m:generateContent', '?fields=candidates,*/promptTokenCount', {}, false],
  ['/v1beta/openai/chat/completions', '?fields=choices', {}, true],
  ['/v1beta/openai/chat/completions', '?fields=choices', {}, false],
  ['/v1beta/openai/chat/completions', '?%24fields=choices,usage.prompt_tokens', {}, false],
  ['/v1/chat/completions', '?fields=choices', {}, true],
] as const) {
  for (const stream of path.includes('openai') ? [false, true] : [path.includes('stream')]) {
    const what = `${path}${query}${stream ? ', streamed' : ''}`
    const told = isIgnored ? 'ignores a field mask, so the usage is' : 'applies a field mask, so no usage is'
    t.test(`the upstream ${told} read: ${what}`, async t => {
      const upstream = await startUpstream(t, (req, res) => {
        void bodyOf(req).then(() => {
          const [part, usage] = path.includes('chat') ? [CHAT, CHAT_USAGE] : [PART, PART_USAGE]
          const isTold = isIgnored || /usage|\*/.test(query)
          const answer = isTold ? part + usage : `${part}}`
          res.setHeader('content-type', stream ? 'text/event-stream' : 'application/json')
          res.end(stream ? `data: ${answer}\n\n${path.includes('chat') ? 'data: [DONE]\n\n' : ''}` : answer)
        })
      })
      const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${priced('m')}`)
      const answer = await fetch(books.gateway.url + path + query, {
        method: 'POST',
        headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'm', stream, messages: [], contents: [] }),
      })
      t.match(await answer.text(), /"hi"/)
      const [row] = [...(await books.drain()).values()]
      t.match(row, isIgnored
        ? { end: 'complete', source: 'reported', usage: { outputTokens: 1 }, costPico: costOf(USED) }
        : { end: 'complete', usage: { outputTokens: null }, costPico: null })
    })
  }
}
