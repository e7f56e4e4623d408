import t from 'tap'
import { groupHeaders, headerValue } from '../../../src/proxy/http/raw-headers.ts'

t.test('groupHeaders lists repeated values, also of names such as __proto__', async t => {
  const flat = ['A', '1', '__proto__', '2', 'a', '3', 'constructor', '4', 'A', '5']
  t.strictSame(Object.entries(groupHeaders(flat)), [['a', ['1', '3', '5']], ['__proto__', '2'], ['constructor', '4']])
})

t.test('headerValue joins the values of all lines', async t => {
  t.equal(headerValue(['A', '1', 'a', '2'], 'a'), '1, 2')
  t.equal(headerValue([], 'a'), null)
})
