import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { KEY } from '../support/gateway.ts'
import { startTokenIssuer } from '../support/token-issuer.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { openBooks } from './billing/books.ts'

const ATTRIBUTION = `
attribution:
  user: [header:x-user, body]
  tags: { project: [header, body], env: [header] }
  require: [project]`

const PATHS = {
  chat: ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'x' }] }],
  responses: ['/v1/responses', { model: 'm', input: 'x' }],
  messages: ['/v1/messages', { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }],
  generate: ['/v1beta/models/m:generateContent', { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }],
} as const

async function start(t: Test, attribution = ATTRIBUTION, more = '') {
  const received: { readonly headers: IncomingHttpHeaders, readonly body: string }[] = []
  const { url, server } = await startUpstream(t, async (req, res) => {
    received.push({ headers: req.headers, body: String(await bodyOf(req)) })
    res.setHeader('content-type', 'application/json')
    res.end('{}')
  })
  const books = await openBooks(t, `${attribution}${more}
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ to: up }]
`)
  const ask = async (protocol: keyof typeof PATHS, headers: Record<string, string>, more: object = {}) => {
    const [path, body] = PATHS[protocol]
    const response = await fetch(books.gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ ...body, ...more }),
    })
    return { status: response.status, text: await response.text(), id: String(response.headers.get('x-gateway-request-id')) }
  }
  return { books, ask, received, server }
}

t.test('the ledger and the log have the user and the tags of each protocol', async t => {
  const { books, ask } = await start(t)
  const asked = await Promise.all([
    ask('chat', { 'x-gateway-tags': 'project=alpha,env=prod', 'x-user': 'u1' }, { user: 'other' }),
    ask('chat', {}, { user: 'u2', metadata: { project: 'alpha' } }),
    ask('responses', {}, { safety_identifier: 'u3', metadata: { project: 'alpha', env: 'dev' } }),
    ask('messages', { 'x-gateway-tags': 'project=alpha' }, { metadata: { user_id: 'u4' } }),
    ask('generate', {}, { labels: { project: 'alpha' } }),
  ])
  const lines = await Promise.all(asked.map(({ id }) => books.gateway.waitForLog(line => line['msg'] === 'exchange' && line['request'] === id)))
  t.match(lines, [
    { user: 'u1', tags: { project: 'alpha', env: 'prod' } }, { user: 'u2' },
    { user: 'u3', tags: { project: 'alpha' }, ignored_attribution: ['metadata.env'] }, { user: 'u4' }, { tags: { project: 'alpha' } },
  ])
  const rows = await books.drain()
  t.strictSame(asked.map(({ id }) => [rows.get(id)?.user, rows.get(id)?.tags, rows.get(id)?.billed]), [
    ['u1', { env: 'prod', project: 'alpha' }, null], ['u2', { project: 'alpha' }, null], ['u3', { project: 'alpha' }, null],
    ['u4', { project: 'alpha' }, null], [null, { project: 'alpha' }, null],
  ])
})

t.test('the headers stay at the gateway, and the body is sent as it came', async t => {
  const { ask, received } = await start(t)
  const metadata = { project: 'alpha' }
  await ask('chat', { 'x-gateway-tags': 'project=alpha', 'x-user': 'u1', 'x-other': 'sent' }, { user: 'u2', metadata })
  t.match(received[0]?.headers, { 'x-other': 'sent', 'x-user': undefined, 'x-gateway-tags': undefined })
  t.match(JSON.parse(received[0]?.body ?? ''), { user: 'u2', metadata })
  const plain = await start(t, '')
  await plain.ask('chat', { 'x-gateway-tags': 'project=alpha', 'x-user': 'u1' })
  t.match(plain.received[0]?.headers, { 'x-user': 'u1', 'x-gateway-tags': undefined })
})

t.test('a request without a required tag gets 400 in the shape of its protocol, and says how to send it', async t => {
  const { books, ask, received } = await start(t)
  const asked = []
  for (const protocol of ['chat', 'responses', 'messages', 'generate'] as const) {
    const { status, text, id } = await ask(protocol, { 'x-gateway-tags': 'projekt=alpha' })
    asked.push(id)
    t.equal(status, 400)
    const { error } = JSON.parse(text) as { error: { message: string } }
    t.match(error.message, "the request needs 'project': send the header x-gateway-tags: project=VALUE, or metadata.project")
    t.match(error.message, 'ignored: x-gateway-tags: projekt')
    // Two of the protocols have no place for a code.
    if (protocol === 'chat' || protocol === 'responses') t.match(text, /attribution_required/)
  }
  t.equal(received.length, 0)
  const rows = await books.drain()
  for (const id of asked) t.match(rows.get(id), { end: 'refused', error: 'attribution_required', tags: null })
})

t.test('a read of what exists needs no tag', async t => {
  const { books } = await start(t)
  const { status } = await fetch(`${books.gateway.url}/v1/responses/resp_1`, { headers: { authorization: `Bearer ${KEY}` } })
  t.equal(status, 200)
})

t.test('a WebSocket has the tags of its handshake', async t => {
  const { books, server } = await start(t)
  server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n'))
  const open = async (headers: Record<string, string>) => {
    const socket = new WebSocket(`${books.gateway.url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: { authorization: `Bearer ${KEY}`, ...headers } })
    const { promise, resolve } = Promise.withResolvers<number | undefined>()
    socket.on('error', () => undefined)
    socket.on('unexpected-response', (_, { statusCode }) => resolve(statusCode))
    return promise
  }
  t.equal(await open({}), 400)
  t.not(await open({ 'x-gateway-tags': 'project=alpha', 'x-user': 'u1' }), 400)
  const rows = [...(await books.drain()).values()]
  t.match(rows, [{ error: 'attribution_required' }, { user: 'u1', tags: { project: 'alpha' } }])
})

t.test('a reload changes what is read', async t => {
  const { books: { gateway }, ask, received } = await start(t, '')
  t.equal((await ask('chat', { 'x-user': 'u1' })).status, 200)
  t.match(received[0]?.headers, { 'x-user': 'u1' })
  await gateway.change(readFileSync(gateway.file, 'utf8') + ATTRIBUTION)
  t.equal((await ask('chat', { 'x-user': 'u1' })).status, 400)
  t.equal((await ask('chat', { 'x-user': 'u1', 'x-gateway-tags': 'project=a' })).status, 200)
  t.match(received[1]?.headers, { 'x-user': undefined })
})

t.test('claims of the token are read, also after a reload that asks for others', async t => {
  const issuer = await startTokenIssuer(t)
  const more = `
keys: []
callers: [{ name: corp, issuer: "${issuer.issuer}", audience: gateway, require: { sub: "*" } }]`
  const { books, ask } = await start(t, '\nattribution: { user: [claim:email] }', more)
  const { gateway } = books
  const token = await issuer.token({ email: 'ann@example.com', org: { project: 'alpha' } })
  const logged = async (text: string) => {
    const { status, id } = await ask('chat', { authorization: `Bearer ${text}`, 'x-user': 'forged' })
    t.equal(status, 200)
    return gateway.waitForLog(line => line['msg'] === 'exchange' && line['request'] === id)
  }
  t.match(await logged(token), { user: 'ann@example.com', tags: undefined })
  t.match(await logged(token), { user: 'ann@example.com' }, 'a remembered token')
  t.match(await logged(await issuer.token({ email: 'eve@example.com', email_verified: false })), { user: undefined })
  const yaml = readFileSync(gateway.file, 'utf8')
  await gateway.change(yaml.replace('{ user: [claim:email] }', '{ user: [claim:email], tags: { project: [claim:org.project] } }'))
  t.match(await logged(token), { user: 'ann@example.com', tags: { project: 'alpha' } })
})
