import OpenAI from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { costOf, openBooks, priced } from './books.ts'
import type { Books } from './books.ts'

/*
 * A background response continues when the client no longer reads its stream,
 * and the client can resume the stream later.
 */

const USAGE = { input_tokens: 100, output_tokens: 500, total_tokens: 600 }

const BEGINNING = [
  { type: 'response.created', sequence_number: 0, response: { id: 'resp_1', status: 'queued' } },
  { type: 'response.output_text.delta', sequence_number: 1, output_index: 0, delta: 'hello ' },
]
const REST = [
  { type: 'response.output_text.delta', sequence_number: 2, output_index: 0, delta: 'there' },
  { type: 'response.completed', sequence_number: 3, response: { id: 'resp_1', usage: USAGE } },
]

function written(events: readonly { type: string }[]): string {
  return events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}

type SetUp = Books & { readonly client: OpenAI }
type Then = 'wait' | 'break' | 'end'

/** A gateway with an upstream that sends the start of a stream and then calls `then`; GET returns the rest. */
async function setUp(t: Test, then: Then, limits = ''): Promise<SetUp> {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      if (req.method === 'GET') {
        res.end(written(REST))
      } else {
        res.write(written(BEGINNING), () => {
          if (then === 'break') res.destroy()
          else if (then === 'end') res.end(written(REST))
        })
      }
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${limits}
${priced('m')}`)
  const client = new OpenAI({ baseURL: `${books.gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
  return { ...books, client }
}

const REQUEST = { model: 'm', input: 'hello', max_output_tokens: 600, stream: true } as const

function rowOf(rows: ReadonlyMap<string, LedgerRow>, endpoint: string): LedgerRow | undefined {
  return [...rows.values()].find(row => row.endpoint === endpoint && row.end !== 'refused')
}

t.test('if a client disconnects from the stream of a background response, the cost is unknown', async t => {
  const { client, gateway, drain } = await setUp(t, 'wait', 'limits: { tokens_per_minute: 1000 }')
  const stream = await client.responses.create({ ...REQUEST, background: true })
  for await (const event of stream) if (event.type === 'response.output_text.delta') break
  await gateway.waitForLog(line => line.msg === 'exchange')
  const again = client.responses.create({ ...REQUEST, background: true })
  // The reservation of the first request is kept.
  t.equal(await again.catch((error: { status?: number }) => error.status), 429)
  t.match(rowOf(await drain(), 'responses'), {
    end: 'client_gone', source: 'estimated', usage: { inputTokens: 4, outputTokens: null }, costPico: null,
  })
})

t.test('resuming the stream of a background response costs nothing', async t => {
  const { client, drain } = await setUp(t, 'wait')
  const types: string[] = []
  const rest = await client.responses.retrieve('resp_1', { stream: true, starting_after: 1 })
  for await (const { type } of rest) types.push(type)
  t.strictSame(types, REST.map(({ type }) => type))
  t.match(rowOf(await drain(), 'other'), { end: 'complete', source: 'none', costPico: 0n })
})

t.test('if a client disconnects before a background response begins, the cost is unknown', async t => {
  const asked = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, req => void bodyOf(req).then(() => asked.resolve()))
  const { gateway, drain } = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${priced('m')}`)
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
  const leaving = new AbortController()
  const request = { model: 'm', input: 'hello', background: true }
  const answer = client.responses.create(request, { signal: leaving.signal })
  await asked.promise
  leaving.abort()
  await t.rejects(answer)
  await gateway.waitForLog(line => line.msg === 'exchange')
  const row = rowOf(await drain(), 'responses')
  t.match(row, { end: 'client_gone', usage: { inputTokens: 4 }, costPico: null })
})

t.test('if the stream of a background response breaks, the cost is unknown', async t => {
  const { client, drain } = await setUp(t, 'break')
  const stream = await client.responses.create({ ...REQUEST, background: true })
  await t.rejects(async () => {
    for await (const _event of stream);
  })
  const row = rowOf(await drain(), 'responses')
  t.match(row, { end: 'upstream_cut', usage: { outputTokens: null }, costPico: null })
})

t.test('a complete stream of a background response has the cost of its reported usage', async t => {
  const { client, drain } = await setUp(t, 'end')
  const stream = await client.responses.create({ ...REQUEST, background: true })
  for await (const _event of stream);
  t.match(rowOf(await drain(), 'responses'), {
    end: 'complete', source: 'reported', costPico: costOf({ input: 100, output: 500 }),
  })
})

t.test('if a client disconnects from a response that is not in the background, the tokens that arrived are billed', async t => {
  const { client, gateway, drain } = await setUp(t, 'wait')
  const stream = await client.responses.create({ ...REQUEST, background: false })
  for await (const event of stream) if (event.type === 'response.output_text.delta') break
  await gateway.waitForLog(line => line.msg === 'exchange')
  t.match(rowOf(await drain(), 'responses'), {
    end: 'client_gone', source: 'estimated', costPico: costOf({ input: 4, output: 2 }),
  })
})
