import t from 'tap'
import { isoTimeOrNull, isolatedName, urlOf } from '../../../src/console/state/texts.ts'

for (const [name, expected] of [
  ['gpt-4o', 'gpt-4o'], ['', ''], ['a b~', 'a b~'], ['é', '\u2068é\u2069'], ['\u05d0', '\u2068\u05d0\u2069'], ['a\u2069b\u2066c', '\u2068abc\u2069'], ['a\nb', '\u2068a\nb\u2069'],
] as const) {
  t.test(`the name ${JSON.stringify(name)} cannot reorder the text around the name`, async t => t.equal(isolatedName(name), expected))
}

for (const [address, isSecure, expected] of [
  [{ host: '0.0.0.0', port: 8080 }, false, 'http://0.0.0.0:8080'], [{ host: '::1', port: 443 }, true, 'https://[::1]:443'], [{ host: '127.0.0.1', port: 0 }, false, null], [{ host: '127.0.0.1', port: 80, fd: 0 }, false, null],
] as const) {
  t.test(`the URL of the address ${JSON.stringify(address)} is ${expected}`, async t => t.equal(urlOf(address, isSecure), expected))
}

t.test('a time is written in UTC', async t => {
  t.equal(isoTimeOrNull(0), '1970-01-01T00:00:00.000Z')
  t.equal(isoTimeOrNull(null), null)
})
