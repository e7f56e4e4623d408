import { once } from 'node:events'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { listening } from '../../../cli/command.ts'
import { KEY } from '../../../support/gateway.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { costOf, filesFor, outputsIn, priced, rowsIn } from '../books.ts'

const ASKED = JSON.stringify({ type: 'response.create', input: 'Say hello to the world.' })
/** Estimated at 4 bytes per token, as at admission. */
const INPUT = Math.ceil(ASKED.length / 4)
const CREATED = { type: 'response.created', response: { model: 'm' } }
const DELTA = { type: 'response.output_text.delta', delta: 'hello, world' }
const COMPLETED = {
  type: 'response.completed', response: { model: 'm', usage: { input_tokens: 10, output_tokens: 4 } },
}

const SESSIONS = {
  'a running response': {
    path: '/v1/responses', said: [CREATED, DELTA], source: 'estimated', input: INPUT, output: 3,
  },
  'a running response after a complete response': {
    path: '/v1/responses', said: [COMPLETED, CREATED, DELTA], source: 'mixed', input: 10, output: 7,
  },
  'a request without a response': {
    path: '/v1/responses?model=m', said: [], source: 'estimated', input: INPUT, output: 0,
  },
  'a running response of a realtime session': {
    path: '/v1/realtime?model=m', said: [{ type: 'response.created', response: {} }, DELTA],
    source: 'estimated', input: null, output: 3,
  },
}

t.test('after kill -9, a WebSocket session costs the tokens that were sent through it', async t => {
  const { server, url } = await startUpstream(t, (_req, res) => res.end())
  const plays = Object.values(SESSIONS)
  new WebSocketServer({ server }).on('connection', (peer, { url }) => {
    t.teardown(() => peer.terminate())
    peer.on('error', () => {}).on('message', () => {
      const n = Number(new URL(String(url), 'http://x').searchParams.get('play'))
      for (const one of plays[n]?.said ?? []) peer.send(JSON.stringify(one))
    })
  })
  const cwd = t.testdir(filesFor(url, priced('m'), { upstream: ', websocket: true', route: ', path: /v1/*' }))
  const { base, child, ended } = await listening(t, ['serve'], { cwd })
  for (const [n, { path }] of plays.entries()) {
    const address = new URL(path, base.replace('http', 'ws'))
    address.searchParams.set('play', String(n))
    const client = new WebSocket(address, { headers: { authorization: `Bearer ${KEY}` } }).on('error', () => {})
    t.teardown(() => client.terminate())
    await once(client, 'open')
    client.send(ASKED)
  }
  const file = join(cwd, 'ledger.db')
  const wanted = plays.map(({ output }) => output).toSorted()
  while (String(outputsIn(file).toSorted()) !== String(wanted)) await setImmediate()
  child.kill('SIGKILL')
  await ended
  const rows = [...rowsIn(t, file).values()].toSorted((a, b) => a.startedAt - b.startedAt)
  t.equal(rows.length, plays.length)
  for (const [n, [what, { source, input, output }]] of Object.entries(SESSIONS).entries()) {
    t.match(rows[n], {
      end: 'interrupted', status: 101, source, model: 'm', upstreamModel: 'm', price: {},
      usage: { inputTokens: input, outputTokens: output },
      costPico: costOf({ input: input ?? 0, output }),
    }, what)
  }
})
