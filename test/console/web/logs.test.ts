import t from 'tap'
import { changeFilter, filterOf, narrowFilter, parsePastedId } from '../../../src/console/web/src/pages/logs/filter.ts'

t.test('a request id is found in pasted text', async t => {
  const id = '0199f3c2-8a41-7cc2-b7a5-3f1c9f0d2a11'
  for (const text of [
    id, `  ${id}\n`, `"${id}"`, `'${id}',`, `“${id}”`, `x-gateway-request-id: ${id}`,
      `"request_id": "${id}"}`,
    `<${id}>.`, `request id ${id}`.replace('id ', 'id: '),
  ]) t.equal(parsePastedId(text), id, text)
  t.equal(parsePastedId(' "" '), '')
})

t.test('invalid filters in the URL are ignored', async t => {
  t.strictSame(filterOf(new URLSearchParams('key=a&status=abc&end=nowhere&model=')), { key: 'a' })
  t.strictSame(filterOf(new URLSearchParams('status=5xx&end=failed&upstream=u')),
    { status: '5xx', end: 'failed', upstream: 'u' })
  t.strictSame(filterOf(new URLSearchParams('end=constructor')), {})
})

t.test('a column has either a filter for a name or a filter for requests without a name', async t => {
  t.strictSame(filterOf(new URLSearchParams('without=model,key,nonsense')), { without: 'key,model' })
  t.strictSame(filterOf(new URLSearchParams('without=key&key=a')), { key: 'a' })
  t.strictSame(filterOf(new URLSearchParams('without=')), {})
  t.strictSame(narrowFilter({ key: 'a', without: 'model' }, 'key', null), { key: null, without: 'model,key' })
  t.strictSame(narrowFilter({ without: 'key,model' }, 'key', 'a'), { key: 'a', without: 'model' })
  t.strictSame(narrowFilter({ without: 'key' }, 'key', undefined), { key: null, without: '' })
})

t.test('a change of a filter keeps the other parameters of the URL', async t => {
  t.equal(changeFilter(new URLSearchParams('range=7d&key=a&end=failed'), { key: null, model: 'm' }).toString(),
    'range=7d&end=failed&model=m')
})
