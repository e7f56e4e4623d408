import t from 'tap'
import { GatewayError } from '../../src/base/errors.ts'
import { retryability, isCredentialRefused, retryAfter } from '../../src/proxy/retry.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0)

t.test('retry-after: seconds, or any of the three forms of a date', t => {
  for (const [value, ms] of [
    ['0', 0],
    ['7', 7_000],
    [' 1.5 ', 1_500],
    ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
    ['Saturday, 21-Nov-26 12:00:30 GMT', 30_000],
    ['Sat Nov 21 12:00:30 2026', 30_000],
    ['Tue Dec  1 12:00:00 2026', 10 * 86_400_000],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
  ] as const) {
    t.equal(retryAfter(['Retry-After', value], NOW), ms, value)
  }
  t.end()
})

t.test('retry-after: what is neither counts as absent', t => {
  for (const value of [
    '', '-5', '-0.5', '+5', '5 s', '1e3', '0x10', 'soon', 'in 5', 'Sat', 'Sat 5', 'NaN', '12:00:30',
    'Sat, 99 Nov 2026 12:00:30 GMT', 'Sat, 21 Nov 2026 99:00:30 GMT', '1'.repeat(400),
    `${' '.repeat(60_000)}-`,
  ]) {
    t.equal(retryAfter(['retry-after', value], NOW), null, value.slice(0, 40))
    t.equal(retryAfter(['retry-after-ms', value], NOW), null, value.slice(0, 40))
  }
  t.equal(retryAfter(['retry-after', '2', 'retry-after-ms', '1500'], NOW), 1_500, 'the finer one counts')
  t.equal(retryAfter(['retry-after-ms', '-5', 'retry-after', '2'], NOW), 2_000, 'the other one tells')
  t.equal(retryAfter([], NOW), null)
  t.end()
})

t.test('who was silent is not asked again, whatever it was that did not come; others may be', t => {
  for (const [code, again] of [
    ['connect_timeout', false],
    ['first_byte_timeout', false],
    ['idle_timeout', false],
    ['upstream_unreachable', true],
    ['upstream_reset', true],
  ] as const) {
    t.strictSame(retryability(new GatewayError(code, 'failed'), null), { retryable: true, again }, code)
  }
  const cut = new GatewayError('upstream_cut', 'cut')
  t.strictSame(retryability(cut, 401), { retryable: true, again: false }, 'a refused key')
  t.end()
})

t.test('which statuses another may mend, and which of them only somebody else', t => {
  for (const [status, retryable, again] of [
    [200, true, true], [300, false, true], [400, false, true], [404, false, true], [408, true, true],
    [429, true, true], [498, true, true], [499, false, true], [500, true, true], [529, true, true],
    [401, true, false], [402, true, false], [403, true, false],
  ] as const) {
    t.strictSame(retryability(null, status), { retryable, again }, String(status))
    t.equal(isCredentialRefused(status), status === 401 || status === 403)
  }
  t.strictSame(retryability(null, null), { retryable: false, again: true })
  t.equal(retryability(new GatewayError('client_gone', 'gone'), 200).retryable, false)
  t.end()
})
