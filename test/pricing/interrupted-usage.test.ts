import t from 'tap'
import { InterruptedUsage, createInterruptedUsage } from '../../src/pricing/interrupted-usage.ts'
import type { SettledUsage } from '../../src/pricing/settle-usage.ts'
import { createTokenCounter } from '../../src/pricing/token-counter.ts'
import { blankUsage } from '../../src/protocols/usage/usage.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'
import { readableMeter } from '../support/readable-meter.ts'

function figures(outputTokens: number): SettledUsage {
  const usage = { ...blankUsage(), outputTokens }
  return { usage, source: 'estimated', billed: true, suspect: false, unread: false }
}

t.test('usage that is counted before the response ends is reported to the client', async t => {
  const share = new InterruptedUsage(Promise.resolve(figures(7)), () => figures(9))
  t.strictSame(await share.settled, figures(7))
  t.strictSame(share.reported, figures(7))
})

t.test('usage that was reported before the count is done is also stored in the ledger', async t => {
  const { promise, resolve } = Promise.withResolvers<SettledUsage>()
  let known = 9
  const share = new InterruptedUsage(promise, () => figures(known++))
  t.strictSame(share.reported, figures(9))
  resolve(figures(7))
  t.strictSame(await share.settled, figures(9))
  t.strictSame(share.reported, figures(9))
})

t.test('a failed count throws at settlement, not before', async t => {
  const share = new InterruptedUsage(Promise.reject(new Error('no count')), () => figures(9))
  await new Promise(resolve => setImmediate(resolve))
  t.strictSame(share.reported, figures(9))
  await t.rejects(share.settled, { message: 'no count' })
})

t.test('the estimated usage is empty if no output was generated, or else the known input and output', async t => {
  const counter = createTokenCounter()
  t.teardown(() => counter.close())
  const told = (...chunks: object[]) => {
    const meter = readableMeter(endpointNamed('chat.completions'))
    for (const chunk of chunks) meter.push(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`))
    return createInterruptedUsage(counter, {
      endpoint: endpointNamed('chat.completions'), request: null, response: { kind: 'stream', meter }, estimatedInput: 9,
    }).reported
  }
  const role = { choices: [{ delta: { role: 'assistant', content: '' } }] }
  t.match(told(role), { billed: false, usage: { inputTokens: null, outputTokens: null } })
  const text = { choices: [{ delta: { content: 'eight by' } }] }
  t.match(told(role, text), { billed: true, source: 'estimated', usage: { inputTokens: 9, outputTokens: 2 } })
  const usage = { prompt_tokens: 5, completion_tokens: 1 }
  t.match(told({ ...role, usage }, text), { source: 'mixed', usage: { inputTokens: 5, outputTokens: 2 } })
})
