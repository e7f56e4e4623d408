import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { sse } from '../../support/translation.ts'
import { connect } from '../../support/wire.ts'
import { chatChunks, chatStream, startTranslating } from '../../support/translating-gateway.ts'
import type { SpeakingUpstream } from '../../support/translating-gateway.ts'

/* A stream that is collected for a client without streaming counts in `server.body_memory`. */

const SERVER = 'server: { listen: 127.0.0.1:0, body_limit: 1mb, body_memory: 1mb }\n'
const END = chatStream({ delta: {}, finish_reason: 'stop' })

const CLIENTS = {
  messages: { path: '/v1/messages', body: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }, error: { type: 'error', error: { type: 'overloaded_error' } } },
  responses: { path: '/v1/responses', body: { model: 'm', input: 'Hi' }, error: { error: { code: 'overloaded' } } },
  generate: { path: '/v1beta/models/m:generateContent', body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }, error: { error: { code: 503, status: 'UNAVAILABLE' } } },
} as const

/** Chunks with text, without the end of the stream. */
function textOf(size: number): string {
  const piece = chatChunks({ delta: { content: 'x'.repeat(16 * 1024) } })
  return chatChunks({ delta: { role: 'assistant', content: '' } }) + piece.repeat(Math.ceil(size / piece.length))
}

const SIZE = 20_000_000
const TEXT = 'x'.repeat(SIZE / 2)
const GEMINI = [{ text: TEXT }, { text: TEXT, finishReason: 'STOP' }].map(({ text, finishReason }) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] }, ...finishReason && { finishReason } }] }))
const LARGE: Readonly<Record<string, SpeakingUpstream>> = {
  'a collected stream with an end marker': { speaks: 'chat', responses: [{ body: textOf(SIZE) + END }] },
  'a collected stream without an end marker': { speaks: 'generate', responses: [{ body: sse(...GEMINI).toString() }] },
  'a whole body': { speaks: 'chat', responses: [{ body: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: TEXT + TEXT } }] } }] },
}

function ask({ url }: TestGateway, { path, body }: { readonly path: string, readonly body: object }): Promise<Response> {
  return fetch(url + path, { method: 'POST', body: JSON.stringify(body), headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' } })
}

async function bytesHeld({ url }: TestGateway): Promise<number> {
  return ((await (await fetch(`${url}/api/status`)).json()) as { body_bytes: number }).body_bytes
}

for (const [name, client] of Object.entries(CLIENTS)) {
  t.test(`${name}: a stream that is collected into a body gives 503 beyond the memory limit`, async t => {
    const responses = [2_000_000, 200_000].map(size => ({ body: textOf(size) + END }))
    const { gateway } = await startTranslating(t, { up: { speaks: 'chat', responses } }, ', retries: 0', SERVER)
    const refused = await ask(gateway, client)
    t.equal(refused.status, 503)
    t.match(await refused.json(), client.error)
    t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { status: 503, error: 'overloaded' })
    while ((await bytesHeld(gateway)) > 0);
    t.equal((await ask(gateway, client)).status, 200, 'the memory is released')
  })
}

for (const [form, up] of Object.entries(LARGE)) {
  t.test(`${form}: unread bytes of a response count as memory until the client disconnects`, async t => {
    const { gateway } = await startTranslating(t, { up }, ', retries: 0')
    const client = await connect(t, gateway.url)
    client.socket.pause()
    const text = JSON.stringify(CLIENTS.messages.body)
    client.send(`POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
    client.socket.resume()
    await client.until(/"content":/)
    client.socket.pause()
    t.ok(await bytesHeld(gateway) > SIZE / 2, String(await bytesHeld(gateway)))
    client.socket.destroy()
    while ((await bytesHeld(gateway)) > 0);
  })
}
