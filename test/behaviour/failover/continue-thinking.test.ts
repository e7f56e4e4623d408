import Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import type { Test } from 'tap'
import { start } from '../../simulator/start.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { WORDS } from './asking.ts'

// With reasoning, the simulator's stream is message_start, the thinking block's start, a ping, eight words of thinking,
// its signature and its end (13 events), then the text.

type Json = Record<string, unknown>

const REQUEST = {
  model: 'm', max_tokens: 4_000, thinking: { type: 'enabled' as const, budget_tokens: 2_000 },
  messages: [{ role: 'user' as const, content: 'Count to sixteen.' }],
}

/** An upstream that enforces Anthropic's rule for thinking, and forwards to the simulator. */
async function startStrictUpstream(t: Test): Promise<{ readonly url: string, readonly bodies: Json[] }> {
  const { url: simulator } = await start(t)
  const bodies: Json[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    const bytes = await bodyOf(req)
    const body = JSON.parse(bytes.toString())
    bodies.push(body)
    const isPrefilled = body.messages.at(-1).role === 'assistant'
    if (body.thinking?.type !== 'disabled' && isPrefilled) {
      res.writeHead(400, { 'content-type': 'application/json' })
      res.end('{"type":"error","error":{"type":"invalid_request_error","message":"no prefill with thinking"}}')
      return
    }
    const answer = await fetch(`${simulator}/v1/messages`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
    })
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end(await answer.text())
  })
  return { url, bodies }
}

async function ask(t: Test, fault: string, more: Json = {}) {
  const first = await start(t)
  const second = await startStrictUpstream(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${first.url}" }, b: { url: "${second.url}" } }
routes: [{ to: [{ upstream: a, model: "sim,${fault}" }, { upstream: b, model: sim, prefill: true }], resume: continue }]`)
  const client = new Anthropic({ baseURL: gateway.addresses.base, authToken: KEY, apiKey: null, maxRetries: 0 })
  const stream = client.messages.stream({ ...REQUEST, ...more })
  const message = await stream.finalMessage().catch((error: unknown) => error as Error)
  return { message, bodies: second.bodies, gateway }
}

for (const shown of ['summarized', 'omitted'] as const) {
  t.test(`a text after ${shown} thinking is continued without new thinking`, async t => {
    const management = { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }, { type: 'clear_tool_uses_20250919' }] }
    const thinking = { ...REQUEST.thinking, display: shown }
    const { message, bodies } = await ask(t, 'close_after=22', { thinking, context_management: management })
    t.match(message, {
      stop_reason: 'end_turn',
      content: [{ type: 'thinking', signature: /./ }, { type: 'text', text: WORDS }],
    })
    t.equal((message as Anthropic.Message).content.length, 2)
    const [body] = bodies
    t.match(body, {
      thinking: { type: 'disabled' },
      messages: [REQUEST.messages[0], { role: 'assistant', content: /^w1 w2/ }],
    })
    t.strictSame(body?.['context_management'], { edits: [{ type: 'clear_tool_uses_20250919' }] })
    t.ok(Number(body?.['max_tokens']) < REQUEST.max_tokens)
  })
}

t.test('a stream that breaks between thinking and text is continued with a request for the text only', async t => {
  const { message, bodies } = await ask(t, 'close_after=13')
  t.match(message, { content: [{ type: 'thinking', signature: /./ }, { type: 'text', text: WORDS }] })
  t.match(bodies, [{ thinking: { type: 'disabled' }, messages: { length: 1 } }])
})

t.test('a stream that breaks before any block is restarted, including thinking', async t => {
  const { message, bodies } = await ask(t, 'error_event_after=1')
  t.match(message, { content: [{ type: 'thinking', signature: /./ }, { type: 'text', text: WORDS }] })
  t.match(bodies, [{ thinking: REQUEST.thinking, max_tokens: REQUEST.max_tokens, messages: { length: 1 } }])
})

t.test('a stream that breaks inside thinking is not continued', async t => {
  const { message, bodies, gateway } = await ask(t, 'close_after=7')
  t.ok(message instanceof Error)
  t.equal(bodies.length, 0)
  t.match(await gateway.waitForLog(line => line.msg === 'the stream cannot be continued'), { why: 'the stream broke inside of thinking' })
})
