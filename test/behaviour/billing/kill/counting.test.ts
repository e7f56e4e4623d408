import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { listening } from '../../../cli/command.ts'
import { KEY } from '../../../support/gateway.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { costOf, filesFor, priced, rowsIn } from '../books.ts'

/** A text that takes long to count, as does the first count of a process. */
const TEXT = 'What is generated and told by nobody is counted. '.repeat(5_000)
/** Bytes per token while the tokens are not counted yet. */
const BYTES_PER_TOKEN = 4

function endsIn(file: string): unknown[] {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
  return db.prepare('SELECT "end" FROM in_flight').all().map(({ end }) => end)
}

const ANSWERS = {
  stream: `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: TEXT } }] })}\n\n`
    + 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  body: JSON.stringify({ choices: [{ message: { content: TEXT } }] }),
} as const

for (const kind of ['stream', 'body'] as const) {
  t.test(`after kill -9 during the token count of an ended ${kind}, the request is complete and has a cost`, async t => {
    const upstream = await startUpstream(t, (req, res) => {
      req.resume()
      const type = kind === 'stream' ? 'text/event-stream' : 'application/json'
      res.writeHead(200, { 'content-type': type }).end(ANSWERS[kind])
    })
    const cwd = t.testdir(filesFor(upstream.url, priced('m')))
    const { base, child, ended } = await listening(t, ['serve'], { cwd })
    const answer = await fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', stream: kind === 'stream', messages: [] }),
    })
    await answer.text()
    const file = join(cwd, 'ledger.db')
    for (let ends = endsIn(file); ends.includes('interrupted'); ends = endsIn(file)) await setImmediate()
    child.kill('SIGKILL')
    await ended
    const [row] = rowsIn(t, file).values()
    t.match(row, { end: 'complete', status: 200, error: null, source: 'estimated' })
    t.ok((row?.durationMs ?? 0) > 0)
    const input = row?.usage.inputTokens ?? 0
    const output = row?.usage.outputTokens ?? 0
    t.ok(output >= TEXT.length / BYTES_PER_TOKEN && output < TEXT.length / BYTES_PER_TOKEN + 100, `${output}`)
    t.equal(row?.costPico, costOf({ input, output }))
  })
}
