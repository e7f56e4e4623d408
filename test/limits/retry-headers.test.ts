import t from 'tap'
import { retryHeaders } from '../../src/limits/retry-headers.ts'
import type { LimitRefusal } from '../../src/limits/types.ts'

t.test('the headers say when to retry', async t => {
  const refusal = (retryAfterMs: number | null, renewsSoon: boolean): LimitRefusal => ({
    which: 'budget', scope: { key: 'a', group: null, model: null }, retryAfterMs, renewsSoon, message: '',
  })
  t.strictSame(retryHeaders(refusal(1, true)), { 'retry-after': '1', 'retry-after-ms': '1' })
  t.strictSame(retryHeaders(refusal(2001, true)), { 'retry-after': '3', 'retry-after-ms': '2001' })
  t.strictSame(retryHeaders(refusal(3_600_000, false)), {
    'retry-after': '3600', 'retry-after-ms': '3600000', 'x-should-retry': 'false',
  })
  t.strictSame(retryHeaders(refusal(null, false)), { 'x-should-retry': 'false' })
})
