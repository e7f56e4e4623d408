import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { LimiterRequest } from '../../../src/limits/workers/lease-messages.ts'
import { LeaseOutbox } from '../../../src/limits/workers/lease-outbox.ts'

function outbox() {
  const sent: (readonly LimiterRequest[])[] = []
  return { sent, outbox: new LeaseOutbox(requests => sent.push(requests)) }
}

const release = (id: number): LimiterRequest => ({ kind: 'release-concurrency', id })

t.test('requests of one turn of the event loop are sent together, in order', async t => {
  const { sent, outbox: box } = outbox()
  box.post(release(1))
  box.post(release(2))
  t.strictSame(sent, [], 'not at once')
  await setImmediate()
  t.strictSame(sent, [[release(1), release(2)]])
  await setImmediate()
  t.equal(sent.length, 1)
  box.post(release(3))
  await setImmediate()
  t.strictSame(sent[1], [release(3)])
})

t.test('consecutive settlements share a message', async t => {
  const { sent, outbox: box } = outbox()
  box.postSettlement(1, { tokens: 5, pico: 6n })
  box.postSettlement(2, { tokens: null, pico: null })
  box.post(release(9))
  box.postSettlement(3, { tokens: 0, pico: 0n })
  await setImmediate()
  t.strictSame(sent, [[
    { kind: 'settle', ids: [1, 2], tokens: [5, null], pico: [6n, null] }, release(9), { kind: 'settle', ids: [3], tokens: [0], pico: [0n] },
  ]])
})

t.test('a settlement replaces only the concurrency release of the same request', async t => {
  const { sent, outbox: box } = outbox()
  box.postSettlement(1, { tokens: 1, pico: 0n })
  box.post(release(2))
  box.postSettlement(2, { tokens: 2, pico: 0n })
  box.post(release(3))
  box.postSettlement(4, { tokens: 4, pico: 0n })
  await setImmediate()
  t.strictSame(sent, [[
    { kind: 'settle', ids: [1, 2], tokens: [1, 2], pico: [0n, 0n] }, release(3), { kind: 'settle', ids: [4], tokens: [4], pico: [0n] },
  ]])
})

t.test('a settlement is sent even if it replaced all waiting messages', async t => {
  const { sent, outbox: box } = outbox()
  box.post(release(1))
  box.postSettlement(1, { tokens: 1, pico: 0n })
  await setImmediate()
  t.strictSame(sent, [[{ kind: 'settle', ids: [1], tokens: [1], pico: [0n] }]])
})
