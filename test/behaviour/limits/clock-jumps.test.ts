import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { connect, post } from '../../support/wire.ts'

const DAY = 86_400_000

t.test('limits and streams are correct when the system clock jumps', async t => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, async (req, res) => {
    const { stream } = JSON.parse((await bodyOf(req)).toString()) as { stream?: boolean }
    if (!stream) {
      res.setHeader('content-type', 'application/json').end('{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":9}}')
      return
    }
    res.setHeader('content-type', 'text/event-stream').write('data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n')
    void released.then(() => res.end('data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: [DONE]\n\n'))
  })
  const dir = t.testdir({
    shift: '0',
    'gateway.yaml': `
server: { listen: 127.0.0.1:0 }
upstreams: { up: { url: "${upstream.url}" } }
models: { m: { price: { input: 0, output: 1000000 } } }
routes: [{ to: up, timeouts: { first_byte: 20s, idle: 20s, total: 20s } }]
keys: [{ name: test, key: ${KEY}, limits: { budget: { usd: 10, per: day } } }, { name: free, key: ${KEY}-free }]
ledger: { file: gateway.db }
`,
  })
  // Replaces the clocks that the gateway reads.
  const clock = `import { readFileSync } from 'node:fs'
    const real = Date.now
    Date.now = () => real() + Number(readFileSync(${JSON.stringify(`${dir}/shift`)}, 'utf8'))`
  const gateway = await listening(t, ['serve', '--config', `${dir}/gateway.yaml`], {
    flags: ['--import', `data:text/javascript,${encodeURIComponent(clock)}`],
  })
  const jump = (days: number) => writeFileSync(`${dir}/shift`, String(days * DAY))
  const ask = async () => {
    const response = await fetch(`${gateway.base}/v1/chat/completions`, {
      method: 'POST', body: '{"model":"m","max_tokens":9}', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    await response.text()
    return response.status
  }
  const stream = await connect(t, gateway.base)
  stream.send(post('/v1/chat/completions', { model: 'm', stream: true, messages: [] }).replace(KEY, `${KEY}-free`))
  await stream.until(/"x"/)
  t.equal(await ask(), 200)
  for (const days of [0, -1, -2, -3, -4, -5, -10, 0]) {
    jump(days)
    t.equal(await ask(), 429, `${days} days: a date that goes back renews no budget`)
  }
  jump(1)
  t.equal(await ask(), 200, 'the next day has a budget')
  t.equal(await ask(), 429)
  jump(-30)
  release()
  t.match(await stream.until(/\[DONE\]/), /^HTTP\/1\.1 200 /, 'a stream that runs during the jumps is complete')
  jump(0)
  gateway.child.kill('SIGTERM')
  t.match(await gateway.ended, { code: 0 })
  using db = new DatabaseSync(`${dir}/gateway.db`)
  const rows = db.prepare('SELECT "end", count(*) AS n FROM requests GROUP BY 1 ORDER BY 1').all()
  t.same(rows, [{ end: 'complete', n: 3 }, { end: 'refused', n: 9 }])
})
