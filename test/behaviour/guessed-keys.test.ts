import t from 'tap'
import { startTestGateway } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'

const LONG = 'sk-long-0123456789abcdef'
const SHORT = 'sk-short'
const upstream = await startUpstream(t, (req, res) => {
  req.resume()
  res.setHeader('content-type', 'application/json').end('{}')
})
const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
keys: [{ name: long, key: ${LONG} }, { name: short, key: ${SHORT} }]
`)

async function ask(key: string): Promise<Response> {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body: '{"model":"m"}', headers: { 'x-api-key': key, 'content-type': 'application/json' },
  })
  await answer.text()
  return answer
}

/** Sends wrong keys, more than the limit gives back meanwhile, until the key of this request is not looked up. */
async function askUntilLimited(key: string): Promise<Response> {
  for (;;) {
    await Promise.all(Array.from({ length: 50 }, (_, n) => ask(`again-${n}`)))
    const answer = await ask(key)
    if (answer.status === 429) return answer
  }
}

t.test('after many wrong keys from one address, a short key gets 429 and a long key is served', async t => {
  t.equal((await ask(SHORT)).status, 200)
  const statuses = new Map<number, number>()
  for (let n = 0; n < 300; n++) {
    const { status } = await ask(n % 2 === 0 ? `wrong-${n}` : `sk-wrong-0123456789-${n}`)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  t.ok((statuses.get(401) ?? 0) >= 100)
  t.ok((statuses.get(429) ?? 0) > 0)
  t.strictSame([...statuses.keys()], [401, 429])
  t.equal((await ask(LONG)).status, 200)
  const refused = await askUntilLimited('wrong')
  t.match(refused.headers.get('retry-after'), /^\d+$/)
  t.equal(refused.headers.get('x-should-retry'), 'false')
  await askUntilLimited(SHORT) // A short key could be a guess.
  t.ok(await gateway.waitForLog(({ msg }) => /too many wrong keys/.test(String(msg))))
})
