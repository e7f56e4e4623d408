import type { IncomingHttpHeaders } from 'node:http'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks } from '../billing/books.ts'

const CARD = '4111 1111 1111 1111'
const PATHS = {
  chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages', generate: '/v1beta/models/m:generateContent',
} as const
type Protocol = keyof typeof PATHS

/** Bodies with a card in a message, in tool arguments, in a tool result and in a document. */
const BODIES: Readonly<Record<Protocol, object>> = {
  chat: { model: 'm', messages: [{ role: 'system', content: `s ${CARD}` }, { role: 'user', content: [{ type: 'text', text: CARD }] }, { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: JSON.stringify({ CARD }) } }] }, { role: 'tool', tool_call_id: 'a', content: CARD }] },
  responses: { model: 'm', instructions: CARD, input: [{ role: 'user', content: [{ type: 'input_text', text: CARD }] }, { type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify({ CARD }) }, { type: 'function_call_output', call_id: 'c', output: CARD }] },
  messages: { model: 'm', max_tokens: 9, system: CARD, messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: CARD } }, { type: 'tool_result', tool_use_id: 'x', content: [{ type: 'text', text: CARD }] }] }, { role: 'assistant', content: [{ type: 'tool_use', id: 'x', name: 'f', input: { deep: [CARD] } }] }] },
  generate: { systemInstruction: { parts: [{ text: CARD }] }, contents: [{ role: 'user', parts: [{ text: CARD }, { functionCall: { name: 'f', args: { CARD } } }, { functionResponse: { name: 'f', response: { deep: [CARD] } } }] }] },
}

async function start(t: Test, checks: string, { route = '', more = '' } = {}) {
  const bodies: string[] = []
  const headers: IncomingHttpHeaders[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    headers.push(req.headers)
    bodies.push(String(await bodyOf(req)))
    res.setHeader('content-type', 'application/json')
    res.end('{"usage":{"prompt_tokens":3,"completion_tokens":4,"input_tokens":3,"output_tokens":4}}')
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ to: up${route} }]
checks: ${checks}
${more}`)
  const ask = async (path: string, body: string | Buffer, extra: Record<string, string> = {}) => {
    const response = await fetch(books.gateway.url + path, {
      method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...extra }, body: typeof body === 'string' ? body : Uint8Array.from(body),
    })
    return { status: response.status, text: await response.text() }
  }
  return { books, ask, bodies, headers }
}

t.test('a card is masked wherever it stands, in each protocol, and every other byte stays', async t => {
  const { ask, bodies, books } = await start(t, '{ cards: { find: card, action: mask } }', { route: ', checks: [cards]' })
  for (const protocol of Object.keys(PATHS) as Protocol[]) {
    const body = JSON.stringify(BODIES[protocol])
    t.equal((await ask(PATHS[protocol], body)).status, 200)
    t.equal(bodies.at(-1), body.replaceAll(CARD, '[CARD_1]'))
    t.equal((await ask(PATHS[protocol], gzipSync(body), { 'content-encoding': 'gzip' })).status, 200)
    t.equal(bodies.at(-1), body.replaceAll(CARD, '[CARD_1]'))
  }
  const line = await books.gateway.waitForLog(entry => entry['msg'] === 'exchange')
  t.match(line, { policy: [{ rule: 'cards', action: 'mask', count: 4 }] })
  t.notMatch(JSON.stringify(line), '4111')
})

t.test('a refusal has the shape of the protocol, names the rule, and no upstream gets the request', async t => {
  const { ask, bodies } = await start(t, '{ cards: { find: [card, secrets], all: true } }')
  for (const protocol of Object.keys(PATHS) as Protocol[]) {
    const { status, text } = await ask(PATHS[protocol], JSON.stringify(BODIES[protocol]))
    t.equal(status, 400)
    t.match(text, /card \(rule 'cards'\)/)
    t.notMatch(text, '4111')
    t.ok('error' in (JSON.parse(text) as object))
  }
  t.equal(bodies.length, 0)
})

t.test('a check that logs sends the bytes of the client', async t => {
  const { ask, bodies, books } = await start(t, '{ pii: { find: [email, card], action: log, all: true }, off: { find: card } }')
  const body = `{ "model":"m", "messages":[{"role":"user","content":"a@b.de ${CARD}"}] }`
  t.equal((await ask(PATHS.chat, body)).status, 200)
  t.equal(bodies[0], body)
  t.match(await books.gateway.waitForLog(line => line['msg'] === 'exchange'), { policy: [{ rule: 'pii', action: 'log', count: 2 }] })
})

t.test('checks of groups and keys apply before those of the route, and share their marks', async t => {
  const { ask, bodies, books } = await start(t, '{ a: { find: email, action: mask }, b: { find: [email, card], action: mask } }', {
    route: ', checks: [b, a]', more: `groups: { team: { checks: [a] } }\nkeys: [{ name: k, key: ${KEY}, group: team }]`,
  })
  t.equal((await ask(PATHS.chat, `{"model":"m","messages":[{"role":"user","content":"a@b.de ${CARD}"}]}`)).status, 200)
  t.equal(bodies[0], '{"model":"m","messages":[{"role":"user","content":"[EMAIL_1] [CARD_1]"}]}')
  t.same((await books.gateway.waitForLog(line => line['msg'] === 'exchange'))['policy'], [
    { rule: 'a', action: 'mask', count: 1 }, { rule: 'b', action: 'mask', count: 1 },
  ])
})

t.test('a prompt with more tokens than the rule allows is refused', async t => {
  const { ask, bodies } = await start(t, '{ short: { size: 50, all: true } }')
  const body = (words: number) => JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'word '.repeat(words) }] })
  t.equal((await ask(PATHS.chat, body(20))).status, 200)
  const { status, text } = await ask(PATHS.chat, body(200))
  t.equal(status, 400)
  t.match(text, /the prompt has \d+ tokens, and the rule allows 50 \(rule 'short'\)/)
  t.equal(bodies.length, 1)
})

t.test('what checks cannot read is refused or noted', async t => {
  const { ask, books, bodies } = await start(t, '{ cards: { find: card, all: true } }')
  const socket = new WebSocket(`${books.gateway.url.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${KEY}` } })
  const status = await new Promise(resolve => socket.on('unexpected-response', (_, res) => resolve(res.statusCode)).on('error', () => resolve('error')))
  t.equal(status, 426)
  t.equal((await ask(PATHS.chat, JSON.stringify({ model: 'm', messages: [], input: Array.from({ length: 20_001 }, () => 'x') }))).status, 400)
  t.equal(bodies.length, 0)
  const form = new FormData()
  form.set('model', 'm')
  form.set('file', new Blob([CARD]), 'a.mp3')
  const upload = await fetch(`${books.gateway.url}/v1/audio/transcriptions`, { method: 'POST', headers: { authorization: `Bearer ${KEY}` }, body: form })
  t.equal(upload.status, 200)
  await upload.arrayBuffer()
  t.match(await books.gateway.waitForLog(line => line['msg'] === 'exchange' && line['status'] === 200), { policy: [{ rule: 'cards', action: 'unchecked', count: 1 }] })
})

t.test('a match in a long text is found wherever it stands, once', async t => {
  const { ask, bodies, books } = await start(t, '{ cards: { find: [card, email, secrets], action: mask, all: true } }')
  const filler = 'lorem ipsum '.repeat(1000)
  const found = [`${CARD} `, 'a.b@example.com ', `sk-${'x'.repeat(40)} `]
  const content = Array.from({ length: 100 }, (_, n) => found[n % 3]! + filler.slice(n)).join('')
  const masked = content.replaceAll(CARD, '[CARD_1]').replaceAll('a.b@example.com', '[EMAIL_1]').replaceAll(`sk-${'x'.repeat(40)}`, '[SECRET_1]')
  t.equal((await ask(PATHS.chat, JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }))).status, 200)
  t.ok(bodies[0] === JSON.stringify({ model: 'm', messages: [{ role: 'user', content: masked }] }))
  t.match(await books.gateway.waitForLog(line => line['msg'] === 'exchange'), { policy: [{ rule: 'cards', action: 'mask', count: 100 }] })
})
