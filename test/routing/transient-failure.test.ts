import t from 'tap'
import { isTransientFailure } from '../../src/routing/transient-failure.ts'

t.test('a first 500 or 502 is one, and whatever says when to come back', t => {
  t.ok(isTransientFailure(500, null, 1))
  t.ok(isTransientFailure(502, null, 1))
  t.ok(isTransientFailure(429, 2_000, 1))
  t.ok(isTransientFailure(503, 0, 1))
  t.end()
})

t.test('being full is none, nor a second failure in a row, nor no answer at all', t => {
  for (const status of [200, 408, 429, 503, 504, 529, null]) {
    t.notOk(isTransientFailure(status, null, 1), String(status))
  }
  t.notOk(isTransientFailure(500, null, 2))
  t.notOk(isTransientFailure(429, 2_000, 2))
  t.end()
})
