import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks, priced } from './books.ts'

const PIECE = 'data: {"choices":[{"index":0,"delta":{"content":"hello there"}}]}\n\n'

t.test('the checkpoint and the ledger row of a stream have the start time and the number of bytes sent', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => res.writeHead(200, { 'content-type': 'text/event-stream' }).write(PIECE))
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${priced('m')}`)
  const leaving = new AbortController()
  const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', body: '{"model":"m","stream":true,"messages":[]}', signal: leaving.signal,
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
  })
  await answer.body?.getReader().read()
  using ledger = new DatabaseSync(books.file, { readOnly: true })
  const drafts = ledger.prepare('SELECT status, first_byte_ms, bytes_out FROM in_flight')
  let draft = drafts.get()
  for (; draft?.['status'] !== 200; draft = drafts.get()) await setImmediate()
  t.match(draft, { first_byte_ms: Number, bytes_out: PIECE.length })
  leaving.abort()
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  const [row] = [...(await books.drain()).values()]
  t.match(row, { end: 'client_gone', firstByteMs: Number, bytesOut: PIECE.length })
})
