import { once } from 'node:events'
import * as http from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { listening } from '../../../cli/command.ts'
import { KEY } from '../../../support/gateway.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { filesFor, priced, rowsIn } from '../books.ts'

/** The statuses of the running requests in the ledger. */
function draftsIn(file: string): unknown[] {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
  return db.prepare('SELECT status FROM in_flight').all().map(({ status }) => status)
}

t.test('after kill -9, running requests are in the ledger, with cost 0 for free endpoints and null for the others', async t => {
  let asked = 0
  const all = Promise.withResolvers<void>()
  const came = (): void => void (++asked === 5 && all.resolve())
  const upstream = await startUpstream(t, req => {
    req.resume()
    came()
  })
  upstream.server.on('upgrade', (_req, socket) => {
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
    came()
  })
  const cwd = t.testdir(filesFor(
    upstream.url, priced('m'), { upstream: ', websocket: true', route: ', path: /v1/*' },
  ))
  const { base, child, ended } = await listening(t, ['serve'], { cwd })
  const headers = { authorization: `Bearer ${KEY}` }
  for (const query of ['model=m', 'intent=transcription']) {
    const socket = http.get(`${base}/v1/realtime?${query}`, {
      headers: {
        ...headers, 'connection': 'Upgrade', 'upgrade': 'websocket', 'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      },
    }).on('error', () => {})
    await once(socket, 'upgrade')
  }
  const recording = new FormData()
  recording.set('model', 'm')
  recording.set('file', new Blob(['sound']), 'a.mp3')
  const json = { ...headers, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'm', messages: [] })
  const running = [
    fetch(`${base}/v1/rerank`, { method: 'POST', headers: json, body }),
    fetch(`${base}/v1/messages/count_tokens`, { method: 'POST', headers: json, body }),
    fetch(`${base}/v1/audio/transcriptions`, { method: 'POST', headers, body: recording }),
  ].map(answer => t.rejects(answer))
  await all.promise
  const file = join(cwd, 'ledger.db')
  const areThere = (drafts: unknown[]): boolean =>
    drafts.length === 5 && drafts.filter(status => status === 101).length === 2
  while (!areThere(draftsIn(file))) await setImmediate()
  child.kill('SIGKILL')
  await Promise.all([...running, ended])
  const rows = [...rowsIn(t, file).values()]
  const costs = Object.fromEntries(
    rows.map(({ endpoint, model, costPico }) => [`${endpoint} ${model}`, costPico]),
  )
  t.strictSame(costs, {
    'realtime m': null, 'realtime null': null, 'other m': null, 'audio.transcriptions m': null,
    'messages.count_tokens m': 0n,
  })
  for (const row of rows) t.match(row, { end: 'interrupted', source: 'none', key: 'team', upstream: 'up' })
  t.equal(rows.find(({ endpoint }) => endpoint === 'realtime')?.status, 101)
})
