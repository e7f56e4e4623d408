import { join } from 'node:path'
import t from 'tap'
import { listening } from '../../../cli/command.ts'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { costOf, filesFor, priced, rowsIn } from '../books.ts'

const ROUNDS = 3
const WORKERS = 16
const HELD = 8
/** ms: the time within which the ledger writes a row, doubled for a busy machine. */
const DUE = 200
const LEAST = 200

interface Asked {
  readonly n: number
  readonly held: boolean
  /** Times of the head and of the end of the response, ms since 1970. */
  begun: number
  ended: number
}

t.test('after kill -9 under load, the ledger has each ended request once and each running request as interrupted', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      const usage = { prompt_tokens: Number(req.headers['x-n']), completion_tokens: 2 }
      if (req.headers['x-held'] === 'true') {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write('data: {"choices":[{"index":0,"delta":{"content":"hello there"}}]}\n\n')
        return
      }
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ choices: [{ message: { content: 'hello there' } }], usage }))
    })
  })
  const cwd = t.testdir(filesFor(upstream.url, priced('m')))
  const asked = new Map<string, Asked>()
  const kills: { at: number; from: number; to: number }[] = []
  let n = 0

  for (let round = 0; round < ROUNDS; round++) {
    const { base, child, ended } = await listening(t, ['serve'], { cwd })
    const from = n
    let answered = 0
    let heldSince = Infinity
    let killedAt = 0
    const ask = async (held: boolean): Promise<void> => {
      const mine: Asked = { n: ++n, held, begun: 0, ended: Infinity }
      const answer = await fetch(`${base}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'm', stream: held, messages: [{ role: 'user', content: 'hello' }] }),
        headers: {
          'authorization': `Bearer ${KEY}`, 'content-type': 'application/json',
          'x-n': String(mine.n), 'x-held': String(held),
        },
      })
      mine.begun = Date.now()
      asked.set(answer.headers.get('x-gateway-request-id') ?? '', mine)
      if (held) heldSince = mine.begun
      await answer.text()
      mine.ended = Date.now()
      answered++
    }
    const work = async (): Promise<void> => {
      while (killedAt === 0) {
        await ask(false)
        if (killedAt !== 0 || answered < LEAST || Date.now() < heldSince + 2 * DUE) continue
        killedAt = Date.now()
        child.kill('SIGKILL')
      }
    }
    const held = Array.from({ length: HELD }, () => ask(true))
    // The kill cuts the running requests on purpose.
    await Promise.allSettled([...held, ...Array.from({ length: WORKERS }, work)])
    await ended
    kills.push({ at: killedAt, from, to: n })
  }

  const { child, ended } = await listening(t, ['serve'], { cwd })
  child.kill('SIGTERM')
  t.match(await ended, { code: 0 })
  const rows = rowsIn(t, join(cwd, 'ledger.db'))
  for (const { at, from, to } of kills) {
    const mine = [...asked].filter(([, each]) => each.n > from && each.n <= to)
    const due = mine.filter(([, each]) => each.ended < at - DUE)
    t.ok(due.length > 0, `${due.length} had ended`)
    const lost = due.filter(([id, each]) => {
      const row = rows.get(id)
      return row?.end !== 'complete' || row.source !== 'reported' || row.usage.inputTokens !== each.n
        || row.costPico !== costOf({ input: each.n, output: 2 })
    })
    t.strictSame(lost, [], 'their final figures are there')
    const running = mine.filter(([, each]) => each.held)
    t.equal(running.length, HELD)
    for (const [id] of running) {
      t.match(rows.get(id), { end: 'interrupted', source: 'estimated', durationMs: null })
      t.ok((rows.get(id)?.usage.inputTokens ?? 0) > 0, 'with its estimate')
      t.ok((rows.get(id)?.costPico ?? 0n) > 0n)
    }
  }
  t.strictSame([...rows.keys()].filter(id => rows.get(id)?.end === 'refused'), [])
})
