import OpenAI from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks } from './books.ts'
import type { Books } from './books.ts'

/*
 * The received bytes of a cut image or transcript do not show its tokens, so
 * the cost of the prompt or of the text is not the cost of the request.
 */

const PRICE = 'models: { m: { price: { input: 3, output: 15 } } }'

interface Played extends Books {
  readonly client: OpenAI
}

/** A gateway with an upstream that sends the start of a response, and then cuts it or waits. */
async function play(
  t: Test, type: string, beginning: string, breaks: boolean, yaml = PRICE,
): Promise<Played> {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': type })
      res.write(beginning, () => breaks && res.destroy())
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${yaml}`)
  const client = new OpenAI({ baseURL: `${books.gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
  return { ...books, client }
}

const PARTIAL = { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: 'AAAA' }
const DELTA = { type: 'transcript.text.delta', delta: 'hello there' }
const ASKED = { model: 'm', prompt: 'a red apple' } as const

function event(data: { readonly type: string }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

t.test('if a client disconnects during a streamed image, the cost is unknown', async t => {
  const price = 'models: { m: { price: { input: 3, output_image: 15 } } }'
  const { client, gateway, drain } = await play(t, 'text/event-stream', event(PARTIAL), false, price)
  const stream = await client.images.generate({ ...ASKED, stream: true })
  for await (const { type } of stream) if (type === PARTIAL.type) break
  await gateway.waitForLog(line => line.msg === 'exchange')
  const [row] = [...(await drain()).values()]
  t.match(row, { end: 'client_gone', usage: { inputTokens: 3, outputTokens: null }, costPico: null })
})

t.test('if a client disconnects during an image that is not streamed, the reservation is charged', async t => {
  const half = `{"data":[{"b64_json":"${'A'.repeat(5_000)}`
  const limits = 'limits: { budget: { usd: 0.1, per: total } }\nbilling: { assumed_output: 5000 }'
  const { gateway, drain } = await play(t, 'application/json', half, false, `${PRICE}\n${limits}`)
  const leaving = new AbortController()
  const ask = (): Promise<Response> => fetch(`${gateway.url}/v1/images/generations`, {
    method: 'POST', signal: leaving.signal, body: JSON.stringify(ASKED),
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
  })
  const answer = await ask()
  const reader = answer.body?.getReader()
  for (let got = 0; got < half.length;) got += (await reader?.read())?.value?.length ?? Infinity
  leaving.abort()
  await gateway.waitForLog(line => line.msg === 'exchange')
  const again = await fetch(`${gateway.url}/v1/images/generations`, {
    method: 'POST', body: JSON.stringify(ASKED),
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
  })
  t.equal(again.status, 429)
  const rows = [...(await drain()).values()]
  t.match(rows.find(row => row.end === 'client_gone'), { usage: { outputTokens: null }, costPico: null })
})

t.test('a cut transcript stream has an unknown cost', async t => {
  const { client, drain } = await play(t, 'text/event-stream', event(DELTA), true)
  const file = new File(['sound'], 'a.wav', { type: 'audio/wav' })
  await t.rejects(async () => {
    const stream = await client.audio.transcriptions.create({ model: 'm', file, stream: true })
    for await (const _event of stream);
  })
  const [row] = [...(await drain()).values()]
  t.match(row, { end: 'upstream_cut', usage: { inputTokens: null, outputTokens: 2 }, costPico: null })
})

const PICTURE = { inlineData: { mimeType: 'image/png', data: 'AAAA' } }
const PROMPT = { promptTokenCount: 7, totalTokenCount: 7 }

t.test('a cut stream of text and an image has an unknown cost', async t => {
  const parts = [{ text: 'Here it is: ' }, PICTURE]
  const chunk = { candidates: [{ content: { parts } }], usageMetadata: PROMPT }
  const { gateway, drain } = await play(t, 'text/event-stream', `data: ${JSON.stringify(chunk)}\n\n`, true)
  const answer = await fetch(`${gateway.url}/v1beta/models/m:streamGenerateContent?alt=sse`, {
    method: 'POST', body: '{"contents":[{"parts":[{"text":"a red apple"}]}]}',
    headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
  })
  await t.rejects(answer.text())
  const [row] = [...(await drain()).values()]
  t.match(row, { end: 'upstream_cut', usage: { inputTokens: 7, outputTokens: null }, costPico: null })
})

for (const [what, delta] of [
  ['audio', { audio: { id: 'audio_1', data: 'AAAA', transcript: 'hello there' } }],
  ['an image', { images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] }],
  ['an event that is too long to be read', { content: 'A'.repeat(65 * 1024 * 1024) }],
] as const) {
  t.test(`a cut chat stream with ${what} has an unknown cost`, async t => {
    const chunk = JSON.stringify({ choices: [{ index: 0, delta }] })
    const { gateway, drain } = await play(t, 'text/event-stream', `data: ${chunk}\n\n`, true)
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST', body: '{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}',
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    await t.rejects(answer.arrayBuffer())
    const [row] = [...(await drain()).values()]
    t.match(row, { end: 'upstream_cut', usage: { inputTokens: 8, outputTokens: null }, costPico: null })
  })
}

t.test('a JSON response that is cut inside an image has an unknown cost', async t => {
  const half = '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"'
    + 'iVBOR'.repeat(100_000)
  const { gateway, drain } = await play(t, 'application/json', half, true)
  const answer = await fetch(`${gateway.url}/v1beta/models/m:generateContent`, {
    method: 'POST', body: '{"contents":[{"parts":[{"text":"a red apple"}]}]}',
    headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
  })
  await t.rejects(answer.text())
  const [row] = [...(await drain()).values()]
  t.match(row, { end: 'upstream_cut', usage: { outputTokens: null }, costPico: null })
})

const HALVES = [
  ['the first of two images', `{"data":[{"b64_json":"${'A'.repeat(5_000)}`],
  ['the second image', `{"data":[{"b64_json":"AAAA"},{"b64_json":"${'A'.repeat(5_000)}`],
] as const

for (const [which, half] of HALVES) {
  t.test(`with a price per image, a response that is cut in ${which} has an unknown cost`, async t => {
    const price = 'models: { m: { price: { per_image: 1 } } }'
    const { gateway, drain } = await play(t, 'application/json', half, true, price)
    const answer = await fetch(`${gateway.url}/v1/images/generations`, {
      method: 'POST', body: JSON.stringify({ ...ASKED, n: 2 }),
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    await t.rejects(answer.text())
    const [row] = [...(await drain()).values()]
    t.match(row, { end: 'upstream_cut', usage: { images: null }, costPico: null })
  })
}

t.test('a cut stream of an image has an unknown cost if only audio output has a price', async t => {
  const chunk = { candidates: [{ content: { parts: [PICTURE] } }], usageMetadata: PROMPT }
  const said = `data: ${JSON.stringify(chunk)}\n\n`
  const price = 'models: { m: { price: { input: 3, output_audio: 15 } } }'
  const { gateway, drain } = await play(t, 'text/event-stream', said, true, price)
  const answer = await fetch(`${gateway.url}/v1beta/models/m:streamGenerateContent?alt=sse`, {
    method: 'POST', body: '{"contents":[{"parts":[{"text":"a red apple"}]}]}',
    headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
  })
  await t.rejects(answer.text())
  const [row] = [...(await drain()).values()]
  t.match(row, { end: 'upstream_cut', usage: { inputTokens: 7, outputTokens: null }, costPico: null })
})
