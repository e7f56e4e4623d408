import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../../support/gateway.ts'
import type { TestGateway } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { priced } from '../books.ts'

const BUDGET = 'limits: { budget: { usd: 3, per: day } }'

/** Each request costs 3 USD. */
async function configuration(t: Test, file: string): Promise<string> {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end('{"choices":[],"usage":{"prompt_tokens":1000000,"completion_tokens":0}}')
    })
  })
  return `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
auth: open
ledger: { file: "${file}" }
${priced('m')}`
}

async function ask({ url }: TestGateway, headers: Record<string, string> = {}): Promise<number> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'm', max_tokens: 1, messages: [] }),
  })
  await answer.text()
  return answer.status
}

t.test('with auth: open, the common budget of requests without a key is kept over a restart', async t => {
  const file = join(t.testdir({ books: {} }), 'books', 'ledger.db')
  await t.test('before the restart', async t => {
    const gateway = await startTestGateway(t, await configuration(t, file) + BUDGET)
    t.equal(await ask(gateway), 200)
    t.equal(await ask(gateway), 429)
  })
  await t.test('after the restart', async t => {
    const gateway = await startTestGateway(t, await configuration(t, file) + BUDGET)
    t.equal(await ask(gateway), 429)
  })
})

t.test('with auth: open, a budget added by a reload includes the spend before the reload', async t => {
  const text = await configuration(t, 'ledger.db')
  const gateway = await startTestGateway(t, text)
  t.equal(await ask(gateway), 200)
  await gateway.change(text + BUDGET)
  t.equal(await ask(gateway), 429)
})

t.test('a key named "anonymous" has its own budget', async t => {
  const file = join(t.testdir({ books: {} }), 'books', 'ledger.db')
  const keys = `\nkeys: [{ name: anonymous, key: ${KEY} }]`
  await t.test('before the restart', async t => {
    const gateway = await startTestGateway(t, await configuration(t, file) + BUDGET + keys)
    t.equal(await ask(gateway, { 'x-api-key': KEY }), 200)
    t.equal(await ask(gateway, { 'x-api-key': KEY }), 429)
    t.equal((await gateway.change()).applied, true)
    t.equal(await ask(gateway), 200)
  })
  await t.test('after the restart, only the spend of the key counts for the key', async t => {
    const gateway = await startTestGateway(t, await configuration(t, file) + keys + `
limits: { budget: { usd: 3.5, per: day } }`)
    t.equal(await ask(gateway), 200)
    t.equal(await ask(gateway, { 'x-api-key': KEY }), 200)
  })
})
