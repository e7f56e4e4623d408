import t from 'tap'
import type { Settled } from '../../src/metering/settle.ts'
import { blankUsage } from '../../src/metering/usage.ts'
import { Share } from '../../src/metering/share.ts'

function figures(outputTokens: number): Settled {
  const usage = { ...blankUsage(), outputTokens }
  return { usage, source: 'estimated', billed: true, suspect: false, unread: false }
}

t.test('counted before the client is told: it is told what was counted', async t => {
  const share = new Share(Promise.resolve(figures(7)), () => figures(9))
  t.strictSame(await share.settled, figures(7))
  t.strictSame(share.told, figures(7))
})

t.test('told before the count is done: that is what the ledger has, and it does not change', async t => {
  const { promise, resolve } = Promise.withResolvers<Settled>()
  let known = 9
  const share = new Share(promise, () => figures(known++))
  t.strictSame(share.told, figures(9))
  resolve(figures(7))
  t.strictSame(await share.settled, figures(9))
  t.strictSame(share.told, figures(9))
})

t.test('a count that fails is told to whoever settles, and to nobody before', async t => {
  const share = new Share(Promise.reject(new Error('no count')), () => figures(9))
  await new Promise(resolve => setImmediate(resolve))
  t.strictSame(share.told, figures(9))
  await t.rejects(share.settled, { message: 'no count' })
})
