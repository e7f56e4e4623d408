import t from 'tap'
import { holdsKey, withoutKeys } from '../../../src/protocols/request/presented-key.ts'

const KEY = 'sk-0123456789abcdef'

t.test('holdsKey finds a key inside a value', async t => {
  for (const value of [KEY, `Bearer ${KEY}`, `a="${KEY}"; b`]) t.ok(holdsKey(value, ['dummy', KEY]), value)
  for (const value of ['', KEY.slice(1), KEY.toUpperCase()]) t.notOk(holdsKey(value, [KEY]), value)
  t.notOk(holdsKey(KEY, []))
})

t.test('a short key is found only as a whole value, and a very short key is ignored', async t => {
  for (const value of ['lm-studio', 'Token lm-studio']) t.ok(holdsKey(value, ['lm-studio']), value)
  for (const value of ['lm-studio/1.0', 'a-lm-studio', 'a lm-studio value', 'by way of lm-studio']) {
    t.notOk(holdsKey(value, ['lm-studio']), value)
  }
  for (const value of ['json', '1', 'Token json']) t.notOk(holdsKey(value, ['json', '1']), value)
})

t.test('withoutKeys removes the parameters that hold a key', async t => {
  t.equal(withoutKeys('', [KEY]), '')
  t.equal(withoutKeys(`?a=${KEY}`, []), `?a=${KEY}`)
  t.equal(withoutKeys(`?a=1&&b=%41&c=${KEY}`, [KEY]), '?a=1&&b=%41')
  t.equal(withoutKeys(`?a=${KEY}`, [KEY]), '')
  t.equal(withoutKeys(`?${KEY}&a=x=${KEY}&b=Bearer+${KEY}&c=%73k-0123456789abcdef&d=%`, [KEY]), '?d=%')
  t.equal(withoutKeys('?a=Token+lm-studio&b=lm-studio2', ['lm-studio']), '?b=lm-studio2')
  t.equal(withoutKeys('?alt=json', ['json']), '?alt=json')
})
