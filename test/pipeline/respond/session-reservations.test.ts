import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { listening } from '../../cli/command.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { rowsIn } from '../../behaviour/billing/books.ts'

/*
 * Each response of a WebSocket reserves its worst case before the upstream gets its request, so that sessions that run at
 * the same time cannot overspend a budget together.
 */

const TEAM = 'sk-team-0123456789abcdef'

interface Asked {
  readonly type: string
  readonly response?: { readonly max_output_tokens?: number }
  readonly max_output_tokens?: number
  readonly stream_id?: string
}

interface Upstream {
  readonly url: string
  /** The requests for responses so far. */
  readonly asked: Asked[]
  /** Completes all requests, each with its maximum of output tokens or with `output` tokens. */
  complete(output?: number): void
}

/** Keeps each response open until the test completes it. */
async function startSessions(t: Test): Promise<Upstream> {
  const { server, url } = await startUpstream(t, (_req, res) => res.writeHead(404).end())
  const asked: Asked[] = []
  const waiting: ((output?: number) => void)[] = []
  new WebSocketServer({ server }).on('connection', (socket, req) => {
    t.teardown(() => socket.terminate())
    const isRealtime = (req.url ?? '').includes('realtime')
    socket.on('error', () => {}).on('message', data => {
      const message = JSON.parse(String(data)) as Asked
      if (message.type !== 'response.create' && message.type !== 'input_audio_buffer.append') return void socket.send('{"type":"noted"}')
      const id = `resp_${asked.push(message)}`
      const lane = isRealtime ? { response_id: id } : message.stream_id === undefined ? {} : { stream_id: message.stream_id }
      socket.send(JSON.stringify({ type: 'response.created', ...lane, response: { id, model: 'm' } }))
      waiting.push(output => socket.send(JSON.stringify({
        type: isRealtime ? 'response.done' : 'response.completed', ...lane,
        response: { id, model: 'm', status: 'completed', usage: { input_tokens: 10, output_tokens: output ?? message.response?.max_output_tokens ?? message.max_output_tokens ?? 100 } },
      })))
    })
  })
  return { url, asked, complete: output => { for (const one of waiting.splice(0)) one(output) } }
}

const yamlOf = (url: string, limits: string): string => `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ path: "/v1/*", to: up }, { to: up }]
billing: { assumed_output: 100 }
keys: [{ name: team, key: ${TEAM}, limits: ${limits} }]
models: { m: { price: { input: 1, output: 10 } } }
`

const budget = (usd: number): string => `{ budget: { usd: ${usd}, per: total } }`

/** A session, and what the client gets. */
class Client {
  readonly got: { readonly type: string }[] = []
  readonly socket: WebSocket
  readonly ended: Promise<[number, Buffer]>

  constructor(url: string, path = '/v1/responses') {
    this.socket = new WebSocket(url.replace('http', 'ws') + path, { headers: { authorization: `Bearer ${TEAM}` } })
    this.socket.on('message', data => this.got.push(JSON.parse(String(data)) as { type: string })).on('error', () => {})
    this.ended = once(this.socket, 'close') as Promise<[number, Buffer]>
  }

  async open(): Promise<this> {
    await once(this.socket, 'open')
    return this
  }

  /** Sends a message. @returns the type of the next message, or the close code of the session */
  async say(message: object): Promise<string | number> {
    this.socket.send(JSON.stringify(message))
    return Promise.race([once(this.socket, 'message').then(([data]) => (JSON.parse(String(data)) as { type: string }).type), this.ended.then(([code]) => code)])
  }

  async next(): Promise<string | number> {
    return Promise.race([once(this.socket, 'message').then(([data]) => (JSON.parse(String(data)) as { type: string }).type), this.ended.then(([code]) => code)])
  }

  async close(): Promise<void> {
    this.socket.close()
    await this.ended
  }
}

const create = (more: object = {}): object => ({ type: 'response.create', model: 'm', max_output_tokens: 1000, input: 'Hi', ...more })

t.test('simultaneous sessions cannot overspend a budget', async t => {
  const upstream = await startSessions(t)
  const gateway = await startTestGateway(t, `${yamlOf(upstream.url, budget(0.035))}ledger: { file: ledger.db }\n`)
  const clients = await Promise.all(Array.from({ length: 10 }, () => new Client(gateway.url).open()))
  const first = await Promise.all(clients.map(client => client.say(create())))
  t.equal(first.filter(type => type === 'response.created').length, 3, 'three times 0.01 USD')
  t.equal(first.filter(code => code === 1008).length, 7)
  t.equal(upstream.asked.length, 3, 'refused responses do not reach the upstream')
  const [, reason] = await clients[first.indexOf(1008)]!.ended
  t.match(String(reason), /may cost more than is left/)
  upstream.complete()
  const open = clients.filter((_, n) => first[n] === 'response.created')
  await Promise.all(open.map(client => client.next()))
  await Promise.all(open.map(client => client.close()))
  await gateway.drain()
  const rows = [...rowsIn(t, join(dirname(gateway.file), 'ledger.db')).values()]
  t.equal(rows.length, 10)
  const spent = rows.reduce((sum, { costPico }) => sum + (costPico ?? 0n), 0n)
  t.equal(spent, 3n * (1000n * 10n + 10n) * 1_000_000n)
  t.match(await gateway.waitForLog(({ error }) => error === 'budget_spent'), { key: 'team' })
})

t.test('when a response ends, the unused part of its reservation is released', async t => {
  const upstream = await startSessions(t)
  const gateway = await startTestGateway(t, yamlOf(upstream.url, budget(0.03)))
  const client = await new Client(gateway.url).open()
  for (let n = 0; n < 20; n++) {
    t.equal(await client.say(create({ max_output_tokens: 2000 })), 'response.created')
    upstream.complete(1)
    t.equal(await client.next(), 'response.completed')
  }
  t.equal(await client.say(create({ max_output_tokens: 2900 })), 'response.created', 'only 20 tokens were used')
  const other = await new Client(gateway.url).open()
  t.equal(await other.say(create()), 1008, 'the running response reserves the rest of the budget')
  upstream.complete(1)
  t.equal(await client.next(), 'response.completed')
  t.equal(await client.say(create({ max_output_tokens: 2900 })), 'response.created')
})

t.test('the next session can reserve the budget that an ended session did not use', async t => {
  const upstream = await startSessions(t)
  const gateway = await startTestGateway(t, yamlOf(upstream.url, budget(0.0301)))
  for (let n = 0; n < 3; n++) {
    const client = await new Client(gateway.url).open()
    t.equal(await client.say(create({ max_output_tokens: 2900 })), 'response.created')
    upstream.complete(1)
    await client.next()
    await client.close()
    await gateway.waitForLog(({ msg, status }) => msg === 'exchange' && status === 101)
  }
})

t.test('the reservation covers the output bound and the input of a response', async t => {
  const upstream = await startSessions(t)
  const gateway = await startTestGateway(t, yamlOf(upstream.url, budget(0.01)))
  const cases: readonly (readonly [what: string, message: object, passes: boolean])[] = [
    ['a bound that fits', create({ max_output_tokens: 900 }), true],
    ['a bound that does not fit', create({ max_output_tokens: 1100 }), false],
    ['no bound: the assumed bound', create({ max_output_tokens: undefined }), true],
    ['another spelling', create({ max_output_tokens: 1, maxOutputTokens: 1100 }), false],
    ['inside of `response`', { type: 'response.create', response: { model: 'm', max_output_tokens: 1100 } }, false],
    ['a fraction', create({ max_output_tokens: 1000.5 }), false],
    ['text', create({ max_output_tokens: '5' }), false],
    ['much input', create({ max_output_tokens: 1, input: 'word '.repeat(8100) }), false],
    ['a model without a price', create({ model: 'x', max_output_tokens: 1 }), false],
    ['a type with an escape', { ...create({ max_output_tokens: 1100 }), type: 'response.create' }, false],
  ]
  for (const [what, message, passes] of cases) {
    const client = await new Client(gateway.url).open()
    t.equal(await client.say(message), passes ? 'response.created' : 1008, what)
    upstream.complete(0)
    if (passes) await client.next()
    if (passes) await client.close()
  }
})

t.test('a response with previous_response_id also reserves the tokens of the earlier response', async t => {
  const upstream = await startSessions(t)
  const gateway = await startTestGateway(t, yamlOf(upstream.url, '{ tokens_per_minute: 3000 }'))
  const client = await new Client(gateway.url).open()
  t.equal(await client.say(create({ max_output_tokens: 1000 })), 'response.created')
  upstream.complete(1000)
  await client.next()
  t.equal(await client.say(create({ max_output_tokens: 500 })), 'response.created')
  upstream.complete(0)
  await client.next()
  t.equal(await client.say(create({ max_output_tokens: 1500, previous_response_id: 'resp_1' })), 1008, '1,010 earlier tokens')
})

t.test('responses of a session do not count against requests_per_minute or concurrent', async t => {
  const upstream = await startSessions(t)
  const gateway = await startTestGateway(t, yamlOf(upstream.url, '{ concurrent: 1, requests_per_minute: 1, tokens_per_minute: 100000 }'))
  const client = await new Client(gateway.url).open()
  for (const stream_id of ['a', 'b', 'c']) t.equal(await client.say(create({ stream_id })), 'response.created')
  upstream.complete()
  await client.next()
})

t.test('realtime: a response reserves the input that the client has sent', async t => {
  const upstream = await startSessions(t)
  const gateway = await startTestGateway(t, yamlOf(upstream.url, budget(0.011)))
  const open = () => new Client(gateway.url, '/v1/realtime?model=m').open()
  const client = await open()
  t.equal(await client.say({ type: 'session.update', session: { max_response_output_tokens: 'inf' } }), 'noted')
  t.equal(await client.say({ type: 'response.create', response: {} }), 'response.created', 'without a bound, the assumed bound')
  upstream.complete(1)
  await client.next()
  t.equal(await client.say({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'word '.repeat(4000) }] } }), 'noted')
  t.equal(await client.say({ type: 'response.create', response: { max_output_tokens: 500 } }), 'response.created')
  const other = await open()
  t.equal(await other.say({ type: 'input_audio_buffer.append', audio: 'A'.repeat(1000) }), 1008, 'audio can start a response')
  upstream.complete(500)
  await client.next()
  t.equal(await client.say({ type: 'response.create', response: { max_output_tokens: 590 } }), 1008, 'earlier input and output are input again')
  const third = await open()
  t.equal(await third.say({ type: 'input_audio_buffer.append', audio: 'A'.repeat(1000) }), 'response.created')
  const fourth = await open()
  t.equal(await fourth.say({ type: 'session.update', session: { max_response_output_tokens: 2000 } }), 'noted')
  t.equal(await fourth.say({ type: 'response.create' }), 1008, 'the session allows more output')
})

t.test('a budget holds across workers, and for several requests in one packet', async t => {
  const upstream = await startSessions(t)
  const file = `${t.testdir({})}/gateway.yaml`
  writeFileSync(file, `server: { listen: "127.0.0.1:0", workers: 2 }\n${yamlOf(upstream.url, budget(0.035))}`)
  const { base } = await listening(t, ['serve', '--config', file])
  const clients = await Promise.all(Array.from({ length: 8 }, () => new Client(base).open()))
  const first = await Promise.all(clients.map(client => client.say(create())))
  t.equal(first.filter(type => type === 'response.created').length, 3)
  t.equal(upstream.asked.length, 3)
  upstream.complete(0)
  const open = clients.filter((_, n) => first[n] === 'response.created')
  await Promise.all(open.map(client => client.next()))
  // Two messages that arrive together are decided together: if one is refused, neither is forwarded.
  const [client] = open as [Client]
  const raw = client.socket as unknown as { _socket: { cork(): void, uncork(): void } }
  raw._socket.cork()
  client.socket.send(JSON.stringify(create({ stream_id: 'a' })))
  client.socket.send(JSON.stringify(create({ stream_id: 'b', max_output_tokens: 5000 })))
  raw._socket.uncork()
  t.equal((await client.ended)[0], 1008)
  t.equal(upstream.asked.length, 3)
})

