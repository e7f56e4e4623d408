import t from 'tap'
import { GatewayError } from '../../src/base/errors.ts'
import { isCredentialRefused, isTransientFailure, retryability } from '../../src/routing/failure.ts'

t.test('a first failure is transient if it is a 500 or a 502, or has a retry delay', t => {
  t.ok(isTransientFailure(500, null, 1))
  t.ok(isTransientFailure(502, null, 1))
  t.ok(isTransientFailure(429, 2_000, 1))
  t.ok(isTransientFailure(503, 0, 1))
  t.end()
})

t.test('a failure is not transient if it means a lack of capacity, is the second in a row, or has no response', t => {
  for (const status of [200, 408, 429, 503, 504, 529, null]) {
    t.notOk(isTransientFailure(status, null, 1), String(status))
  }
  t.notOk(isTransientFailure(500, null, 2))
  t.notOk(isTransientFailure(429, 2_000, 2))
  t.end()
})

t.test('a target can be retried after a broken connection, but not after a timeout', t => {
  for (const [code, sameTargetAllowed] of [
    ['connect_timeout', false],
    ['first_byte_timeout', false],
    ['idle_timeout', false],
    ['upstream_unreachable', true],
    ['upstream_reset', true],
  ] as const) {
    t.strictSame(retryability(new GatewayError(code, 'failed'), null), { retryable: true, sameTargetAllowed }, code)
  }
  const cut = new GatewayError('upstream_cut', 'cut')
  t.strictSame(retryability(cut, 401), { retryable: true, sameTargetAllowed: false }, 'a refused credential')
  t.end()
})

t.test('each status is not retryable, retryable at other targets only, or retryable at any target', t => {
  for (const [status, retryable, sameTargetAllowed] of [
    [200, true, true], [300, false, true], [400, false, true], [404, false, true], [408, true, true],
    [429, true, true], [498, true, true], [499, false, true], [500, true, true], [529, true, true],
    [401, true, false], [402, true, false], [403, true, false],
  ] as const) {
    t.strictSame(retryability(null, status), { retryable, sameTargetAllowed }, String(status))
    t.equal(isCredentialRefused(status), status === 401 || status === 403)
  }
  t.strictSame(retryability(null, null), { retryable: false, sameTargetAllowed: true })
  t.equal(retryability(new GatewayError('client_gone', 'gone'), 200).retryable, false)
  t.end()
})
