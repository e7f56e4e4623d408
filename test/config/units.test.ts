import fc from 'fast-check'
import t from 'tap'
import { parseDuration, parseSize } from '../../src/config/units.ts'

t.test('durations are parsed as milliseconds', async t => {
  for (const [text, ms] of [
    ['250ms', 250], ['10s', 10_000], ['30m', 1_800_000], ['1h', 3_600_000], ['1.5h', 5_400_000],
    ['400d', 34_560_000_000], ['0s', 0], ['0.4ms', 0], ['1.1s', 1100],
  ] as const) t.equal(parseDuration(text), ms, text)
})

t.test('sizes are parsed as bytes, with binary units', async t => {
  for (const [text, bytes] of [
    ['64mb', 64 * 1024 * 1024], ['512kb', 512 * 1024], ['1gb', 1024 ** 3], ['10b', 10], ['1.5kb', 1536],
    ['1MB', 1024 ** 2], [4096, 4096],
  ] as const) t.equal(parseSize(text), bytes, String(text))
})

t.test('malformed durations and sizes are refused', async t => {
  for (const text of ['', '10', '10 s', '-1s', '1e3s', '1h30m', '10S', 's', '1.s', 'ten', '10s\n']) {
    t.throws(() => parseDuration(text), RangeError, JSON.stringify(text))
  }
  for (const text of ['', '10', '64 mb', '-1kb', '64m', '64mib', '1tb', 'mb', '1mb\n']) {
    t.throws(() => parseSize(text), RangeError, JSON.stringify(text))
  }
  t.throws(() => parseDuration(`${'9'.repeat(30)}d`), RangeError, 'a duration above the largest exact integer')
})

t.test('whole amounts are parsed exactly', async () => {
  fc.assert(fc.property(fc.nat(), amount =>
    parseDuration(`${amount}s`) === amount * 1000 && parseSize(`${amount}kb`) === amount * 1024))
})
