import { join } from 'node:path'
import t from 'tap'
import { explainCost } from '../../../src/pricing/cost.ts'
import { listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { filesFor, rowsIn } from './books.ts'

t.test('a duration with many digits is rounded before it is recorded and billed', async t => {
  const durations = ['1e-100', '8.470000267028809']
  const left = [...durations]
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(`{"text":"hello","duration":${left.shift()}}`)
    })
  })
  const models = 'models: { ears: { price: { per_second: 0.0001 } } }\n'
  const cwd = t.testdir(filesFor(upstream.url, models))
  const { base, child, ended } = await listening(t, ['serve'], { cwd })
  for (const duration of durations) {
    const form = new FormData()
    form.set('model', 'ears')
    form.set('file', new Blob(['sound']), 'a.mp3')
    const answer = await fetch(`${base}/v1/audio/transcriptions`, {
      method: 'POST', headers: { authorization: `Bearer ${KEY}` }, body: form,
    })
    t.match(await answer.text(), duration)
  }
  child.kill('SIGTERM')
  t.match(await ended, { code: 0 })
  const rows = [...rowsIn(t, join(cwd, 'ledger.db')).values()]
  t.strictSame(rows.map(({ costPico }) => costPico), [0n, 847_000_000n])
  const bills = rows.map(({ usage, price }) => explainCost(usage, price))
  t.match(bills, [{ length: 0 }, [{ quantity: 8.47, cost: '0.000847' }]])
})
