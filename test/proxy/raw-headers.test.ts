import t from 'tap'
import { groupHeaders, headerLines, headerValue } from '../../src/proxy/raw-headers.ts'

t.test('grouped: several values are a list, and no name is special', async t => {
  const flat = ['A', '1', '__proto__', '2', 'a', '3', 'constructor', '4', 'A', '5']
  t.strictSame(Object.entries(groupHeaders(flat)), [['a', ['1', '3', '5']], ['__proto__', '2'], ['constructor', '4']])
})

t.test('headerValue joins the values of all lines', async t => {
  t.equal(headerValue(['A', '1', 'a', '2'], 'a'), '1, 2')
  t.equal(headerValue([], 'a'), null)
})

const RAW = ['X-B', '1', 'Set-Cookie', 'a', 'x-a', '2', 'X-B', '3', 'Set-Cookie', 'b']

function headersOf(raw: readonly string[]): Headers {
  const headers = new Headers()
  for (let i = 0; i < raw.length; i += 2) headers.append(raw[i] as string, raw[i + 1] as string)
  return headers
}

t.test('headerLines keeps the lines that were not changed, and adds the others', async t => {
  t.strictSame(headerLines(headersOf(RAW), RAW), RAW)
  const added = headersOf(RAW)
  added.set('host', 'h')
  t.strictSame(headerLines(added, RAW), [...RAW, 'host', 'h'])
  const changed = headersOf(RAW)
  changed.set('x-b', '4')
  changed.delete('x-a')
  t.strictSame(headerLines(changed, RAW), ['Set-Cookie', 'a', 'Set-Cookie', 'b', 'x-b', '4'])
})

t.test('headerLines: a cookie less is a change, a header less leaves the others', async t => {
  const fewer = headersOf(RAW.slice(0, -2))
  t.strictSame(headerLines(fewer, RAW), ['X-B', '1', 'x-a', '2', 'X-B', '3', 'set-cookie', 'a'])
  t.strictSame(headerLines(headersOf([]), RAW), [])
})
