import t from 'tap'
import { canonicalQuery, checkQueryModel, decode, extractKey, queryModel, renameQuery } from '../../../src/protocols/request/query.ts'

for (const [query, expected] of [
  ['', null], ['?', null], ['?a=b', null], ['?model=m', 'm'], ['?Model=m', 'm'], ['?mode%6c=m', 'm'], ['?model=a%2Fb', 'a/b'], ['?model=a+b', 'a b'], ['?model=', null], ['?model=m&model=m', 'm'],
  ['?deployment=d', null], ['?deployment=d&api-version=1', 'd'], ['?API-Version=1&Deployment=d', 'd'], ['?models=m', null],
] as const) {
  t.test(`the model in the query "${query}" is ${expected}`, async t => t.equal(queryModel(query), expected))
}

for (const [query, code] of [['?model=a&model=b', 'model_ambiguous'], ['?model=a&MODEL=b', 'model_ambiguous'], [`?model=${'x'.repeat(257)}`, 'model_not_found'], ['?model=..', 'model_required']] as const) {
  t.test(`the query "${query.slice(0, 30)}" is refused`, async t => t.throws(() => queryModel(query), { code }))
}

t.test('a query with another model than the body is refused', async t => {
  checkQueryModel('m', '?model=m')
  checkQueryModel('m', '?a=b')
  t.throws(() => checkQueryModel('m', '?model=n'), { code: 'model_ambiguous' })
})

for (const [query, expected] of [
  ['', ''], ['?a=b', '?a=b'], ['?model=m&a=%20', '?model=x%2Fy&a=%20'], ['?a=1&MODEL=m', '?a=1&MODEL=x%2Fy'], ['?mode%6c=m', '?mode%6c=x%2Fy'], ['?model=m&model=m', '?model=x%2Fy&model=x%2Fy'], ['?a=model=m', '?a=model=m'],
  ['?deployment=d', '?deployment=d'], ['?api-version=1&deployment=d', '?api-version=1&deployment=x%2Fy'], ['?model', '?model'],
] as const) {
  t.test(`the model in "${query}" is renamed`, async t => t.equal(renameQuery(query, 'x/y'), expected))
}

for (const [query, expected] of [
  ['', ''], ['?api-version=2025-04-01', ''], ['?API-Version', ''], ['?api-version=1&deployment=d&a=b', '?model=d&a=b'], ['?Deployment=d', '?model=d'], ['?api-versions=1', '?api-versions=1'],
] as const) {
  t.test(`the query "${query}" of Azure becomes "${expected}"`, async t => t.equal(canonicalQuery(query), expected))
}

const KEYS: readonly (readonly [query: string, rest: string, key: string | null, isGoogles: boolean])[] = [
  ['', '', null, false], ['?a=b', '?a=b', null, false], ['?key=k', '', 'k', true], ['?key=k&a=b', '?a=b', 'k', true], ['?a=b&api-key=k%2B', '?a=b', 'k+', false], ['?key=1&api-key=2', '', '1', true],
  ['?api-key=2&key=1', '', '2', false], ['?k%65y=k', '', 'k', true], ['?KEY=k', '', null, false], ['?apikey=k&x-api-key=j', '', null, false], ['?x_goog_api_key=k', '', null, false], ['?key', '', null, false],
  ['?monkey=k', '?monkey=k', null, false], ['?key=%zz', '', '%zz', true], ['?a=%zz', '?a=%zz', null, false], ['?key=', '', '', true],
]

for (const [query, rest, queryKey, isGoogles] of KEYS) {
  t.test(`the credential of "${query}" is ${queryKey}`, async t => t.strictSame(extractKey(query), { query: rest, queryKey, isGoogles }))
}

t.test('text that is not an escape is not decoded', async t => t.strictSame([decode('a%20b'), decode('100%'), decode('a+b')], ['a b', '100%', 'a+b']))
