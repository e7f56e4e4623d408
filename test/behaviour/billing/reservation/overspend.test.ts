import { Agent, request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { costOf, openBooks, priced, rowsIn } from '../books.ts'

const REQUESTS = 1000
const SERVED = 100
const PROTOCOLS = {
  chat: {
    path: '/v1/chat/completions',
    answer: { choices: [{ index: 0, message: { role: 'assistant', content: 'x' } }] },
    refusal: { error: { type: 'insufficient_quota', code: 'insufficient_quota' } },
  },
  messages: {
    path: '/v1/messages',
    answer: { type: 'message', content: [{ type: 'text', text: 'x' }] },
    refusal: { type: 'error', error: { type: 'rate_limit_error' } },
  },
} as const

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

function ask(agent: Agent, url: string, body: string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const headers = { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }
  request(url, { method: 'POST', agent, headers }, res => {
    text(res).then(body => resolve({ status: res.statusCode ?? 0, headers: res.headers, body }), reject)
  }).on('error', reject).end(body)
  return promise
}

for (const [protocol, { path, answer, refusal }] of Object.entries(PROTOCOLS)) {
  const body = JSON.stringify({ model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'hello' }] })
  // Admission reserves a quarter of the bytes as input tokens, and all of max_tokens at the highest rate.
  const input = Math.ceil(body.length / 4)
  const each = costOf({ input, output: 50, reasoning: 50 })
  const usage = protocol === 'chat'
    ? { prompt_tokens: input, completion_tokens: 50, completion_tokens_details: { reasoning_tokens: 50 } }
    : { input_tokens: input, output_tokens: 50, output_tokens_details: { thinking_tokens: 50 } }

  t.test(`${protocol}: a budget for 100 requests admits 100 of 1,000 simultaneous requests`, async t => {
    // Nobody is answered before the gateway has decided on all.
    const decided = Promise.withResolvers<void>()
    let asked = 0
    const upstream = await startUpstream(t, (req, res) => {
      asked++
      void bodyOf(req).then(() => decided.promise).then(() => {
        res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ ...answer, usage }))
      })
    })
    // The budget is enough for 100 requests, and not for 101.
    const usd = Number(each * BigInt(SERVED) + each / 2n) / 1e12
    const file = join(t.testdir({}), 'ledger.db')
    const yaml = `server: { listen: 127.0.0.1:0 }
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
keys: [{ name: team, key: ${KEY}, limits: { budget: { usd: ${usd}, per: total } } }]
${priced('m')}`
    const agent = new Agent({ keepAlive: true, maxSockets: REQUESTS })
    t.teardown(() => agent.destroy())

    await t.test('at most the budget is spent', async t => {
      const books = await openBooks(t, yaml, file)
      let refused = 0
      const answers = await Promise.all(Array.from({ length: REQUESTS }, async () => {
        const got = await ask(agent, books.gateway.url + path, body)
        if (got.status === 429 && ++refused === REQUESTS - SERVED) decided.resolve()
        return got
      }))
      t.equal(answers.filter(({ status }) => status === 200).length, SERVED)
      t.equal(asked, SERVED, 'a refused request reaches no upstream')
      const others = answers.filter(({ status }) => status !== 200)
      t.strictSame(new Set(others.map(({ status }) => status)), new Set([429]))
      for (const { headers, body } of others.slice(0, 5)) {
        t.match(JSON.parse(body), refusal)
        // The rest of the budget is only reserved, so a retry after 1 s can succeed.
        t.match(headers, { 'content-type': /json/, 'retry-after': '1' })
      }
      const rows = [...(await books.close()).values()]
      t.equal(rows.length, REQUESTS, 'the ledger has a row for each request, also for refused requests')
      const spent = rows.reduce((sum, { costPico }) => sum + (costPico ?? 0n), 0n)
      t.equal(spent, each * BigInt(SERVED))
      const free = rows.filter(({ end }) => end === 'refused')
      t.equal(free.length, REQUESTS - SERVED)
      t.ok(free.every(({ costPico, source, usage }) =>
        costPico === 0n && source === 'none' && usage.inputTokens === null))
    })

    await t.test('after a restart the budget is still used up', async t => {
      const books = await openBooks(t, yaml, file)
      agent.destroy()
      const got = await ask(new Agent(), books.gateway.url + path, body)
      t.equal(got.status, 429)
      t.match(got.headers, { 'x-should-retry': 'false' })
      t.notOk('retry-after' in got.headers, 'a total budget never renews')
      await books.close()
      t.equal(rowsIn(t, file).size, REQUESTS + 1)
      t.equal(asked, SERVED)
    })
  })
}
