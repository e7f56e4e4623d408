import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { gzipSync } from 'node:zlib'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { ROOT } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks } from '../billing/books.ts'

const PATHS = {
  chat: ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'x' }] }],
  responses: ['/v1/responses', { model: 'm', input: 'x' }],
  messages: ['/v1/messages', { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }],
  generate: ['/v1beta/models/m:generateContent', { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }],
} as const

interface Call {
  readonly headers: IncomingHttpHeaders
  readonly body: Record<string, unknown>
}

/** @param reply of the hook */
async function start(t: Test, reply: (res: ServerResponse, call: Call) => void, { hook = '', more = '', where = 'route' } = {}) {
  const calls: Call[] = []
  let heard = () => {}
  const { url: hookUrl, server: hookServer } = await startUpstream(t, async (req, res) => {
    const call = { headers: req.headers, body: JSON.parse(String(await bodyOf(req))) as Call['body'] }
    calls.push(call)
    heard()
    reply(res, call)
  })
  const received: IncomingHttpHeaders[] = []
  const bodies: string[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    received.push(req.headers)
    bodies.push(String(await bodyOf(req)))
    res.setHeader('content-type', 'application/json')
    res.end('{"usage":{"prompt_tokens":3,"completion_tokens":4,"input_tokens":3,"output_tokens":4}}')
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ to: up${where === 'route' ? ', hooks: [dlp]' : ''} }]
hooks: { dlp: { url: "${hookUrl}/check", secret: a-secret-of-the-hook, timeout: 10s${hook}${where === 'all' ? ', all: true' : ''} } }
${more}`)
  const ask = async (protocol: keyof typeof PATHS = 'chat', extra: object = {}, headers: Record<string, string> = {}) => {
    const [path, body] = PATHS[protocol]
    const response = await fetch(books.gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ ...body, ...extra }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const untilCalls = async (count: number) => {
    while (calls.length < count) await new Promise<void>(resolve => (heard = resolve))
  }
  return { books, ask, calls, received, bodies, hookServer, untilCalls, hookUrl }
}

function json(res: ServerResponse, reply: unknown): void {
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
}

const schema = JSON.parse(readFileSync(join(ROOT, 'docs/public/hook.schema.json'), 'utf8')) as { $defs: object }
const isCall = new Ajv2020({ strict: false, validateFormats: false }).addSchema(schema, 'hook').compile({ $ref: 'hook#/$defs/Call' })

t.test('a hook is asked about each protocol, and its calls are as the schema says', async t => {
  const { ask, calls, received } = await start(t, res => json(res, { action: 'allow' }), { hook: ', send: body' })
  for (const protocol of Object.keys(PATHS) as (keyof typeof PATHS)[]) {
    t.equal((await ask(protocol)).status, 200)
    const call = calls.at(-1)
    t.ok(isCall(call?.body), JSON.stringify(isCall.errors))
    t.match(call?.body, { version: 1, hook: 'dlp', on: 'request', request: { protocol, model: 'm', key: 'test', stream: false }, body: PATHS[protocol][1] })
    t.notMatch(JSON.stringify(call), KEY)
    t.equal(call?.headers.authorization, undefined)
  }
  t.equal(received.length, 4)
})

t.test('parameters of a hook are sent, and the rest of the body as the client wrote it', async t => {
  const { ask, bodies, books } = await start(t, res => json(res, {
    action: 'replace', parameters: { temperature: 0, metadata: null, service_tier: 'flex' }, tags: { department: 'sales' },
  }), { more: 'attribution: { tags: { department: [hook] } }' })
  t.equal((await ask('chat', { temperature: 1, metadata: { a: 'b' }, seed: 12345 })).status, 200)
  t.equal(bodies[0], '{"service_tier":"flex","model":"m","messages":[{"role":"user","content":"x"}],"temperature":0,"seed":12345}')
  const gzipped = await fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'content-encoding': 'gzip' },
    body: gzipSync(JSON.stringify({ ...PATHS.chat[1], temperature: 1 })),
  })
  t.equal(gzipped.status, 200)
  await gzipped.arrayBuffer()
  t.equal(bodies[1], '{"service_tier":"flex","model":"m","messages":[{"role":"user","content":"x"}],"temperature":0}')
  t.match(await books.gateway.waitForLog(line => line['msg'] === 'exchange'), { policy: [{ rule: 'dlp', action: 'replace', count: 3 }] })
})

t.test('texts of a hook are sent in each protocol, and every other byte stays', async t => {
  const card = 'card 4111 1111 1111 1111 \u00fc'
  const { ask, calls, bodies } = await start(t, (res, { body }) => {
    const texts = body['texts'] as { id: string, text: string }[]
    json(res, { action: 'replace', texts: texts.filter(({ text }) => text.includes('4111')).map(({ id, text }) => ({ id, text: text.replace(/\d[\d ]{18}/, '[CARD_1]') })) })
  }, { hook: ', send: text' })
  const extras = {
    chat: { messages: [{ role: 'user', content: card }, { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: JSON.stringify({ card }) } }] }, { role: 'tool', tool_call_id: 'a', content: card }] },
    responses: { input: [{ type: 'function_call_output', call_id: 'c', output: card }] },
    messages: { system: card, messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: card } }, { type: 'tool_result', tool_use_id: 'x', content: [{ type: 'text', text: card }] }] }] },
    generate: { contents: [{ role: 'user', parts: [{ text: card }, { functionResponse: { name: 'f', response: { deep: [card] } } }] }] },
  } as const
  for (const protocol of Object.keys(PATHS) as (keyof typeof PATHS)[]) {
    t.equal((await ask(protocol, extras[protocol])).status, 200)
    t.ok(isCall(calls.at(-1)?.body), JSON.stringify(isCall.errors))
    t.equal(bodies.at(-1), JSON.stringify({ ...PATHS[protocol][1], ...extras[protocol] }).replaceAll('4111 1111 1111 1111', '[CARD_1]'))
  }
})

t.test('a request that is too large for a hook is as if the hook were down', async t => {
  const { ask, calls } = await start(t, res => json(res, { action: 'allow' }), { hook: ', send: text' })
  t.equal((await ask('chat', { messages: [{ role: 'user', content: 'x'.repeat(5_000_000) }] })).status, 503)
  t.equal((await ask('chat', { input: Array.from({ length: 20_001 }, () => 'x') })).status, 503)
  t.equal(calls.length, 0)
})

t.test('a text and a parameter that holds it cannot both be replaced', async t => {
  const { ask, received } = await start(t, res => json(res, { action: 'replace', texts: [{ id: 't1', text: 'y' }], parameters: { messages: [] } }), { hook: ', send: text' })
  t.equal((await ask()).status, 503)
  t.equal(received.length, 0)
})

t.test('a hook cannot change the route that is chosen already, nor make the body too large', async t => {
  for (const parameters of [{ model: 'other' }, { stream: true }, { user: 'x'.repeat(50_000) }]) {
    const { ask, books, received } = await start(t, res => json(res, { action: 'replace', parameters }), {
      more: 'server: { listen: 127.0.0.1:0, body_limit: 10kb }',
    })
    const { status, text } = await ask()
    t.equal(status, 503)
    t.match(text, /could not be checked/)
    t.match(await books.gateway.waitForLog(line => line['hook'] === 'dlp'), { why: /^invalid: / })
    t.equal(received.length, 0)
  }
})

t.test('a refusal reaches the client in the shape of each protocol, and no upstream', async t => {
  const { ask, received, books } = await start(t, res => json(res, { action: 'refuse', message: 'no customer data' }))
  for (const protocol of Object.keys(PATHS) as (keyof typeof PATHS)[]) {
    const { status, text } = await ask(protocol, protocol === 'generate' ? {} : { stream: true })
    t.equal(status, 400)
    t.match(JSON.parse(text), { error: { message: /no customer data \(rule 'dlp'\)/ } })
  }
  t.equal(received.length, 0)
  for (const { error, upstream } of (await books.close()).values()) t.strictSame({ error, upstream }, { error: 'policy_refused', upstream: null })
})

t.test('the client\'s own provider credential never reaches a hook', async t => {
  const { books, calls, hookUrl } = await start(t, res => json(res, { action: 'allow' }), { hook: ', send: body' })
  const { url, } = await startUpstream(t, (_req, res) => res.end('{}'))
  await books.gateway.change(`
upstreams: { own: { url: "${url}", auth: { client: true } } }
routes: [{ to: own, hooks: [dlp] }]
hooks: { dlp: { url: "${hookUrl}/check", send: body } }
`)
  const response = await fetch(`${books.gateway.url}/v1/chat/completions?key=sk-query-1`, {
    method: 'POST', headers: { 'x-gateway-key': KEY, authorization: 'Bearer sk-own-secret', 'content-type': 'application/json' },
    body: JSON.stringify({ ...PATHS.chat[1], tools: [{ type: 'mcp', authorization: 'sk-own-mcp' }] }),
  })
  await response.arrayBuffer()
  t.equal(calls.length, 1)
  t.notMatch(JSON.stringify(calls), /sk-/)
})

t.test('tags of a hook are in the ledger, and complete what is required', async t => {
  const { ask, books } = await start(t, (res, { body }) => json(res, {
    action: 'tag', tags: { department: (body['request'] as { user: string | null }).user === 'u1' ? 'sales' : '', other: 'x' },
  }), { more: 'attribution: { user: [body], tags: { department: [hook], other: [header] }, require: [department] }' })
  t.equal((await ask('chat', { user: 'u1' })).status, 200)
  const refused = await ask('chat', { user: 'u2' })
  t.equal(refused.status, 400)
  t.match(refused.text, /the request needs 'department'/)
  t.match(await books.gateway.waitForLog(line => line['hook'] === 'dlp'), { why: /ignored tags: other/ })
  const rows = [...(await books.close()).values()]
  t.strictSame(rows.map(({ user, tags }) => ({ user, tags })), [{ user: 'u1', tags: { department: 'sales' } }, { user: 'u2', tags: null }])
})

t.test('when_down decides about requests while the hook is down, and the circuit opens', async t => {
  for (const [whenDown, status] of [['refuse', 503], ['allow', 200]] as const) {
    const { ask, books, calls } = await start(t, res => void res.writeHead(500).end(), { hook: `, when_down: ${whenDown}` })
    for (let n = 0; n < 5; n++) {
      const response = await ask()
      t.equal(response.status, status)
      if (status === 503) t.match([response.headers.get('retry-after'), response.text], ['1', /could not be checked \(rule 'dlp'\)/])
    }
    t.equal(calls.length, 3)
    t.match(await books.gateway.waitForLog(line => line['hook'] === 'dlp'), { why: 'status: status 500', count: 1 })
  }
})

t.test('a client that disconnects ends the call of the hook', async t => {
  let ended = () => {}
  const isEnded = new Promise<void>(resolve => (ended = resolve))
  const { books, untilCalls, received } = await start(t, res => void res.on('close', ended))
  const abort = new AbortController()
  const response = fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }, body: JSON.stringify(PATHS.chat[1]), signal: abort.signal,
  })
  await untilCalls(1)
  abort.abort()
  await t.rejects(response)
  await isEnded
  t.match(await books.gateway.waitForLog(line => line['msg'] === 'exchange'), { error: 'client_gone' })
  t.equal(received.length, 0)
})

t.test('a tap gets copies of requests and responses, refused ones too, and a dead one costs nothing', async t => {
  const { ask, calls, untilCalls } = await start(t, res => void res.writeHead(500).end(), { hook: ', tap: true, on: [request, response], send: body', where: 'all' })
  t.equal((await ask('messages')).status, 200)
  await untilCalls(2)
  for (const { body } of calls) t.ok(isCall(body), JSON.stringify(isCall.errors))
  t.match(calls.map(({ body }) => body), [
    { on: 'request', tap: true, body: PATHS.messages[1] },
    { on: 'response', tap: true, response: { status: 200, end: 'complete', usage: { input_tokens: 3, output_tokens: 4 } } },
  ])
  for (let n = 0; n < 5; n++) t.equal((await ask()).status, 200)
})

t.test('hooks of keys and groups apply, each once', async t => {
  const { ask, calls, hookUrl, books } = await start(t, res => json(res, { action: 'allow' }), { where: 'none' })
  t.equal((await ask()).status, 200)
  t.equal(calls.length, 0)
  const hooks = `hooks: { one: { url: "${hookUrl}" }, two: { url: "${hookUrl}" }, three: { url: "${hookUrl}" } }`
  await books.gateway.change(`
upstreams: { up: { simulator: true } }
routes: [{ to: up, hooks: [one, three] }]
${hooks}
groups: { company: { hooks: [two] }, team: { parent: company, hooks: [three] } }
keys: [{ name: test, key: ${KEY}, group: team, hooks: [one] }]
`)
  t.equal((await ask()).status, 200)
  t.strictSame(calls.map(({ body }) => body['hook']), ['two', 'three', 'one'])
})

t.test('a handshake is asked about, or refused if the hook needs the body', async t => {
  const { books, calls, hookUrl } = await start(t, res => json(res, { action: 'refuse', message: 'no' }), { hook: '' })
  const handshake = async () => {
    const socket = new WebSocket(`${books.gateway.url.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${KEY}` } })
    const [, response] = await once(socket, 'unexpected-response') as [unknown, { statusCode: number }]
    return response.statusCode
  }
  t.equal(await handshake(), 400)
  t.equal(calls.length, 1)
  const text = readFileSync(books.gateway.file, 'utf8')
  await books.gateway.change(text.replace(`${hookUrl}/check"`, `${hookUrl}/check", send: body`))
  t.equal(await handshake(), 426)
  t.equal(calls.length, 1)
})

t.test('a reload keeps a hook that it does not change, with its circuit', async t => {
  const { books, ask, calls } = await start(t, res => void res.writeHead(500).end())
  for (let n = 0; n < 3; n++) await ask()
  const text = readFileSync(books.gateway.file, 'utf8')
  await books.gateway.change(`${text}\n# changed\n`)
  await ask()
  t.equal(calls.length, 3)
  await books.gateway.change(text.replace('timeout: 10s', 'timeout: 9s'))
  await ask()
  t.equal(calls.length, 4)
})

t.test('the example service refuses, tags, and takes no call without a valid signature', async t => {
  const secret = 'a-secret-of-the-example'
  const service = spawn(process.execPath, [join(ROOT, 'docs/public/hook-service.js')], { env: { HOOK_SECRET: secret, PORT: '0' }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => service.kill())
  const [line] = await once(createInterface(service.stdout), 'line') as [string]
  const url = line.replace('listening on ', '')
  t.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 401)
  const { books, ask } = await start(t, res => void res.end(), { where: 'none' })
  const config = (trial: string) => `
upstreams: { up: { simulator: true } }
routes: [{ to: up, hooks: [dlp] }]
attribution: { tags: { department: [hook] } }
hooks: { dlp: { url: "${url}", secret: ${secret}, timeout: 10s } }
groups: { trial: {}, sales: {} }
keys: [{ name: test, key: ${KEY}, group: ${trial} }]
`
  await books.gateway.change(config('sales'))
  t.equal((await ask('chat', { model: 'opus' })).status, 200)
  t.match(await books.gateway.waitForLog(line => line['msg'] === 'exchange' && line['tags'] !== undefined), { tags: { department: 'sales' } })
  await books.gateway.change(config('trial'))
  const refused = await ask('chat', { model: 'opus' })
  t.match([refused.status, refused.text], [400, /opus is not part of the trial/])
})
