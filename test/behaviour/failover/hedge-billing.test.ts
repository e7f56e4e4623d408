import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { TestGateway } from '../../support/gateway.ts'
import { costOf } from '../billing/books.ts'
import { DIALECTS, ask, candidatesOf } from './asking.ts'
import type { Dialect } from './asking.ts'
import { CHAT, onlyRow, openStream, refuse, respond, startPair } from './racing.ts'

const ANSWER = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'second' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
].map(event).join('')
const ROLE = 'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}\n\n'

t.test('a client that disconnects before any content arrives pays for the prompts of both attempts', async t => {
  const { first, second, books, gateway } = await startPair(t, { after: '200ms' })
  const leaving = new AbortController()
  const asking = ask(gateway, CHAT, { stream: true, signal: leaving.signal })
  const slow = await first.asked.promise
  openStream(slow)
  slow.write(ROLE)
  await second.asked.promise
  leaving.abort()
  await t.rejects(asking)
  await Promise.all([first.cancelled.promise, second.cancelled.promise])
  const row = await onlyRow(books.drain())
  const prompts = row.attempts.map(({ inputTokens }) => inputTokens ?? 0)
  t.ok(prompts.every(tokens => tokens > 0), String(prompts))
  t.equal(row.usage.inputTokens, (prompts[0] ?? 0) + (prompts[1] ?? 0))
})

t.test('a client that disconnects after the second target has failed pays only for the prompt of the first target', async t => {
  const { first, second, books, gateway } = await startPair(t)
  const leaving = new AbortController()
  const asking = ask(gateway, CHAT, { stream: true, signal: leaving.signal })
  await first.asked.promise
  refuse(await second.asked.promise, 503)
  while ((await candidatesOf(gateway) as { in_flight: number }[])[1]?.in_flight !== 0) await setImmediate()
  leaving.abort()
  await t.rejects(asking)
  await first.cancelled.promise
  const row = await onlyRow(books.drain())
  t.match(row, { end: 'client_gone', upstream: 'a', attempts: [{ upstream: 'b', status: 503 }, { upstream: 'a' }] })
  t.ok((row.usage.inputTokens ?? 0) > 0)
  t.equal(row.costPico, costOf({ input: row.usage.inputTokens ?? 0, output: 0 }))
})

t.test('an attempt that is cancelled while its error response arrives is not billed', async t => {
  const { first, second, books, gateway } = await startPair(t)
  const asking = ask(gateway, CHAT, { stream: true })
  const slow = await first.asked.promise
  const refusing = await second.asked.promise
  refusing.writeHead(503, { 'content-type': 'application/json', 'content-length': 100 })
  await write(gateway, refusing, '{"error":')
  respond(slow, 'first')
  t.match(await asking, { status: 200, text: 'first', whole: true })
  const row = await onlyRow(books.drain())
  t.equal(row.costPico, costOf({ input: 10, output: 2 }))
})

t.test('a cancelled attempt costs the input that its upstream has reported', async t => {
  const [, MESSAGES] = DIALECTS as [Dialect, Dialect]
  for (const abandoned of ['prompt', 'none']) {
    const { first, second, books, gateway } = await startPair(t, { after: '200ms', more: `billing: { abandoned: ${abandoned} }` })
    const asking = ask(gateway, MESSAGES, { stream: true })
    await beginMessage(gateway, await first.asked.promise, { input_tokens: 9, cache_read_input_tokens: 1000, output_tokens: 1 })
    const res = await second.asked.promise
    openStream(res)
    res.end(messageStart({ input_tokens: 10, output_tokens: 1 }) + ANSWER)
    t.match(await asking, { status: 200, text: 'second', whole: true })
    const row = await onlyRow(books.drain())
    t.equal(row.costPico, costOf({ input: 1009, cached: 1000, output: 0 }) + costOf({ input: 10, output: 2 }), abandoned)
  }
})

t.test('a cancelled attempt has the price of the service tier that its upstream has reported', async t => {
  const [, MESSAGES] = DIALECTS as [Dialect, Dialect]
  const { first, second, books, gateway } = await startPair(t, { after: '200ms', models: `models:
  one: { price: { input: 3, output: 15, service_tiers: { priority: { input: 6, output: 30 } } } }
  two: { price: { input: 3, output: 15 } }` })
  const asking = ask(gateway, MESSAGES, { stream: true })
  await beginMessage(gateway, await first.asked.promise, { input_tokens: 100, output_tokens: 1, service_tier: 'priority' })
  const res = await second.asked.promise
  openStream(res)
  res.end(messageStart({ input_tokens: 10, output_tokens: 1 }) + ANSWER)
  t.match(await asking, { status: 200, text: 'second', whole: true })
  const row = await onlyRow(books.drain())
  t.equal(row.costPico, 2n * costOf({ input: 100, output: 0 }) + costOf({ input: 10, output: 2 }))
})

t.test('if two attempts get no response before timeouts.total, neither attempt is billed', async t => {
  const { first, second, books, gateway } = await startPair(t, { route: ', timeouts: { total: 1s }' })
  const asking = ask(gateway, CHAT, { stream: true })
  await Promise.all([first.asked.promise, second.asked.promise])
  t.match(await asking, { status: 504, body: /total_timeout/ })
  t.match(await onlyRow(books.drain()), { end: 'timeout', usage: { inputTokens: null }, costPico: 0n })
})

t.test('with billing.abandoned: none, the unused reserved tokens of the target that responds are released', async t => {
  const { first, second, gateway } = await startPair(t, {
    more: 'billing: { abandoned: none }', secondUpstream: ', limits: { tokens_per_minute: 1000 }',
  })
  for (const text of ['one', 'two']) {
    const asking = ask(gateway, CHAT, { stream: true, body: { max_tokens: 800 } })
    await first.asked.promise
    respond(await second.asked.promise, text)
    t.match(await asking, { status: 200, text })
    void first.askAgain()
    void second.askAgain()
  }
})

/** Starts a stream with the usage. Resolves after the gateway has read the usage. */
async function beginMessage(gateway: TestGateway, res: ServerResponse, usage: object): Promise<void> {
  openStream(res)
  await write(gateway, res, messageStart(usage))
}

function messageStart(usage: object): string {
  return event({ type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage } })
}

function event(data: { readonly type: string, readonly [name: string]: unknown }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Writes bytes. Resolves after the gateway has read the bytes. */
async function write(gateway: TestGateway, res: ServerResponse, text: string): Promise<void> {
  await new Promise<void>(resolve => res.write(text, () => resolve()))
  // After the response to a later request, the gateway has read the bytes.
  await candidatesOf(gateway)
}
