import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { gateway as run } from '../../cli/command.ts'
import { start } from '../../simulator/start.ts'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { openBooks, priced, costOf } from '../billing/books.ts'
import { DIALECTS, ask, everyWay, twoTargets } from './asking.ts'

const [CHAT] = DIALECTS
const USED = 'input=100,output=20'

everyWay(t, 'every attempt is in the ledger, and the attempt that responds ' +
  'is billed at the price of its target', async (t, dialect, stream) => {
  const { url } = await start(t)
  const [first, second] = [`sim,status=503,${USED}`, `sim,${USED}`]
  const books = await openBooks(t, `${twoTargets(url, url, first, second)}
models:
  "${first}": { price: { input: 1000, output: 1000 } }
${priced(second).replace('models:\n', '')}`)
  const answer = await ask(books.gateway, dialect, { stream })
  const id = answer.headers.get('x-gateway-request-id') as string
  const row = (await books.close()).get(id)
  const { stdout: story } = await run([
    'usage', '--config', books.gateway.file, '--request', id,
  ])
  t.match(row, {
    upstream: 'b', upstreamModel: second, status: 200, end: 'complete', source: 'reported',
    usage: { inputTokens: 100, outputTokens: 20 },
    attempts: [
      { upstream: 'a', model: first, outcome: 'error_answer', status: 503 },
      { upstream: 'b', model: second, outcome: 'ok', status: 200 },
    ],
  })
  t.equal(row?.attempts.length, 2)
  t.equal(row?.costPico, costOf({ input: 100, output: 20 }))
  t.match(story, /attempt 1: a, model sim,status=503\S*: error_answer, status 503 \w+, after [\d.]+ ms/)
  t.match(story, /attempt 2: b, model sim\S*: ok, status 200, after [\d.]+ ms/)
  t.match(story, /upstream +b/)
})

everyWay(t, 'the ledger has the error code or type ' +
  'of a failed attempt', async (t, dialect, stream) => {
  const words = { chat: 'rate_limit_exceeded', messages: 'rate_limit_error', generate: 'RESOURCE_EXHAUSTED' }
  for (const [models, count] of [
    [['sim,status=429'], 1], [['sim,status=429', 'sim'], 2],
    [['sim,status=429,gzip'], 1], [['sim,status=429,gzip', 'sim'], 2],
  ] as const) {
    const { url } = await start(t)
    const targets = models.map(model => `{ upstream: a, model: "${model}" }`).join(', ')
    const books = await openBooks(
      t, `upstreams: { a: { url: "${url}" } }\nroutes: [{ to: [${targets}], retries: ${count - 1} }]`,
    )
    await ask(books.gateway, dialect, { stream })
    const [row] = [...(await books.close()).values()]
    t.equal(row?.attempts.length, count)
    const [first] = row?.attempts ?? []
    t.match(first, { outcome: 'error_answer', status: 429, said: words[dialect.name] })
    t.equal(row?.attempts[1]?.said, undefined)
  }
})

everyWay(t, 'an attempt with a refused credential is in the ledger with its status', async (t, dialect, stream) => {
  for (const targets of ['a', '[a, b]']) {
    const { url } = await start(t)
    const books = await openBooks(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes: [{ to: ${targets} }]`)
    await ask(books.gateway, dialect, { stream, model: 'sim,status=401' })
    const [row] = [...(await books.close()).values()]
    t.match(row?.attempts.at(-1), { outcome: 'upstream_rejected_key', status: 401 })
  }
})

everyWay(t, 'if all attempts fail, the request costs nothing and the ledger has both attempts', async (t, dialect, stream) => {
  for (const [one, two, outcomes] of [
    ['status=500', 'status=503', ['error_answer', 'error_answer']],
    ['reset', 'close', ['upstream_reset', 'upstream_reset']],
    ['error_200', 'error_200', ['error_answer', 'error_answer']],
    ['cut_after=0', 'status=401', [stream ? 'upstream_cut' : 'upstream_invalid', 'upstream_rejected_key']],
  ] as const) {
    const { url } = await start(t)
    const models = [`sim,${one},${USED}`, `sim,${two},${USED}`] as const
    const books = await openBooks(t, `${twoTargets(url, url, ...models)}\n${priced(...new Set(models))}`)
    await ask(books.gateway, dialect, { stream })
    const [row] = [...(await books.close()).values()]
    t.equal(row?.costPico, 0n, `${one}, ${two}`)
    t.strictSame(row?.attempts.map(each => each.outcome), outcomes, `${one}, ${two}`)
  }
})

everyWay(t, 'if a second attempt responds, a first attempt that failed ' +
  'after it generated tokens is not billed', async (t, dialect, stream) => {
  const { url } = await start(t)
  const fault = stream ? 'error_event_after=0' : 'close_after=4'
  const models = [`sim,${fault},${USED}`, `sim,${USED}`] as const
  const books = await openBooks(t, `${twoTargets(url, url, ...models)}\n${priced(...models)}`)
  await ask(books.gateway, dialect, { stream })
  const [row] = [...(await books.close()).values()]
  t.equal(row?.costPico, costOf({ input: 100, output: 20 }))
})

for (const [fault, streams] of [
  ['first_event_error', [true]], ['error_event_after=3', [true]], ['error_200', [false, true]],
  ['error_200,gzip', [false]],
] as const) {
  everyWay(t, `a response with status 200 that contains an error ` +
    `is an error in the ledger (${fault})`, async (t, dialect, stream) => {
    const { url } = await start(t)
    const books = await openBooks(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: { upstream: a, model: "sim,${fault}" } }]
`)
    t.match(await ask(books.gateway, dialect, { stream }), { status: 200, whole: true })
    const [row] = [...(await books.close()).values()]
    t.match(row, {
      status: 200, end: 'error', error: null, attempts: [{ outcome: 'error_answer', status: 200 }],
    })
  }, [...streams])
}

t.test('an error that the client gets is recorded with the price of the upstream that sent the error', async t => {
  const { url } = await start(t)
  const [one, two] = ['sim,status=500', 'sim,reset']
  const books = await openBooks(t, `${twoTargets(url, url, one, two)}
models:
  "${one}": { price: { input: 1, output: 1 } }
  "${two}": { price: { input: 2, output: 2 } }`)
  t.equal((await ask(books.gateway, CHAT!)).status, 500)
  const [row] = [...(await books.close()).values()]
  t.match(row, { upstream: 'a', upstreamModel: one, price: { input: '1' }, costPico: 0n })
})

t.test('a request that is refused before it is sent to the target has no attempt in the ledger', async t => {
  const { url, simulator } = await start(t)
  const books = await openBooks(t, `
upstreams: { a: { url: "${url}" } }
routes: [{ to: { upstream: a, model: sim } }]`)
  const answer = await fetch(`${books.gateway.url}/v1beta/models/m:batchEmbedContents`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ requests: Array.from({ length: 10_001 }, () => ({})) }),
  })
  t.equal(answer.status, 400)
  const [row] = [...(await books.close()).values()]
  t.match(row, { end: 'refused', error: 'invalid_json', upstream: null })
  t.strictSame(row?.attempts, [])
  t.equal(simulator.stats.requests, 0)
})

t.test('the checkpoint of a running request lists every attempt that has begun', async t => {
  const [broken, silent] = await Promise.all([
    start(t), startUpstream(t, req => void req.resume()),
  ])
  const books = await openBooks(t, twoTargets(broken.url, silent.url, 'sim,status=503', 'n', ''))
  const leaving = new AbortController()
  const asked = fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', signal: leaving.signal,
    body: '{"model":"m","messages":[]}',
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
  })
  using ledger = new DatabaseSync(books.file, { readOnly: true })
  const drafts = ledger.prepare('SELECT upstream, attempts FROM in_flight')
  let draft = drafts.get()
  for (; draft?.['upstream'] !== 'b'; draft = drafts.get()) await setImmediate()
  t.match(JSON.parse(String(draft['attempts'])), [
    { upstream: 'a', outcome: 'error_answer', status: 503 }, { upstream: 'b', model: 'n' },
  ])
  leaving.abort()
  await t.rejects(asked)
})
