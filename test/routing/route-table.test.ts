import fc from 'fast-check'
import t from 'tap'
import { compileGlobs } from '../../src/config/glob.ts'
import type { Route } from '../../src/config/types.ts'
import { RouteTable } from '../../src/routing/route-table.ts'
import { heapInUse } from '../support/heap.ts'

const NO_TARGETS = { targets: [], on: { contextLength: null, contentFilter: null } }

function table(...routes: [path: string | null, models: string[] | null][]) {
  const made = routes.map(([path, models], index) => ({ index, path, models, ...NO_TARGETS }) as unknown as Route)
  return new RouteTable(made, compileGlobs)
}

const at = (found: Route | null) => found?.index ?? null

t.test('the first route whose path and model match wins', async t => {
  const routes = table(
    ['/v1/messages*', ['claude-*']], [null, ['fast', 'gpt-*']], ['/v1/*', null], [null, ['*']],
  )
  for (const [path, model, expected] of [
    ['/v1/messages', 'claude-haiku', 0],
    ['/v1/messages/count_tokens', 'claude-haiku', 0],
    ['/v1/messages', 'gpt-4', 1],
    ['/v1/chat/completions', 'fast', 1],
    ['/v1/chat/completions', 'faster', 2],
    ['/v1/chat/completions', 'FAST', 2],
    ['/v1/files', null, 2],
    ['/v1beta/models/x:generateContent', 'x', 3],
    ['/v1beta/files', null, null],
  ] as const) {
    t.equal(at(routes.match(path, model)), expected, `${path} ${model}`)
    t.equal(at(routes.match(path, model)), expected, 'the second match comes from the cache')
  }
})

t.test('a route with models does not match a request without a model, not even a route with the model *', async t => {
  t.equal(at(table([null, ['*']]).match('/v1/files', null)), null)
  t.equal(at(table([null, ['*']]).match('/v1/files', '')), 0)
})

t.test('pairs of path and model are not confused', async t => {
  const routes = table(['/a', ['b']], ['/a\nb', null])
  t.equal(at(routes.match('/a', 'b')), 0)
  const other = table(['/a', ['b']], ['/c', null])
  t.equal(at(other.match('/c', null)), 1)
  t.equal(at(other.match('/a', null)), null)
  const joined = table(['/a', ['bc']], ['/ab', ['c']])
  t.equal(at(joined.match('/a', 'bc')), 0)
  t.equal(at(joined.match('/ab', 'c')), 1)
})

t.test('the cache of matches is bounded, and stays correct', async () => {
  const routes = table(['/v1/*', ['m-*']], [null, null])
  for (let i = 0; i < 20_000; i++) {
    const known = at(routes.match('/v1/x', i % 2 ? `m-${i}` : `n-${i}`))
    if (known !== (i % 2 ? 0 : 1)) throw new Error(`route ${known} for ${i}`)
  }
})

t.test('servesPath, namesPath and servesModel consider all routes', async t => {
  const routes = table(['/v1/files*', null], [null, ['gpt-*']])
  t.ok(routes.servesPath('/anything'))
  t.ok(routes.namesPath('/v1/files/x'))
  t.notOk(routes.namesPath('/anything'))
  t.ok(routes.servesModel('gpt-4'))
  t.ok(table(['/x', null]).servesModel('any'))
  t.notOk(table([null, ['a']]).servesModel('b'))
  t.notOk(table(['/x', ['a']]).servesPath('/y'))
})

t.test('trace says why each earlier route did not match', async t => {
  const routes = table(['/v1/messages', null], [null, ['a']], [null, ['b']], [null, null])
  const why = (path: string, model: string | null) => routes.trace(path, model).map(step => step.miss)
  t.strictSame(why('/v1/x', 'b'), ['path', 'model', null])
  t.strictSame(why('/v1/x', null), ['path', 'no model', 'no model', null])
  t.strictSame(table([null, ['a']]).trace('/x', 'b').map(step => step.miss), ['model'])
})

t.test('match and trace always agree', async () => {
  const glob = fc.stringMatching(/^[ab*/]{1,4}$/)
  const text = fc.stringMatching(/^[ab/]{0,4}$/)
  fc.assert(fc.property(
    fc.array(
      fc.tuple(fc.option(glob), fc.option(fc.array(glob, { minLength: 1, maxLength: 2 }))), { maxLength: 5 },
    ),
    text,
    fc.option(text),
    (list, path, model) => {
      const routes = table(...list)
      const last = routes.trace(path, model).at(-1)
      return at(routes.match(path, model)) === (last?.miss === null ? last.route.index : null)
    },
  ), { numRuns: 500 })
})

t.test('long paths are not cached, because clients choose them', async t => {
  const routes = table([null, null])
  const path = (n: number) => Buffer.alloc(50_000, `/v1/${n}-`).toString('latin1')
  const before = heapInUse()
  for (let n = 0; n < 2_000; n++) routes.match(path(n), null)
  const more = heapInUse() - before
  t.ok(more < 20_000_000, `${more >> 20} MB more`)
  t.equal(at(routes.match('/v1/x', null)), 0)
})

t.test('results of servesModel are cached', async t => {
  let looks = 0
  const made = ['a', 'b*', 'c'].map(model => ({ path: null, models: [model] }) as unknown as Route)
  const routes = new RouteTable(made, globs => text => {
    looks++
    return compileGlobs(globs)(text)
  })
  for (let n = 0; n < 3; n++) {
    t.strictSame(['c', 'bee', 'd'].map(model => routes.servesModel(model)), [true, true, false])
  }
  t.equal(looks, 3 + 2 + 3)
})

t.test('the star in the model of a target is replaced by the text that the star of the route matches', async t => {
  const named = (models: string[], own: string, asked: string) => {
    const route = { index: 0, path: null, models, targets: [{ model: own }, { model: 'plain' }, { model: null }], on: { contextLength: { model: own }, contentFilter: null } }
    const found = new RouteTable([route as unknown as Route], compileGlobs).match('/v1/x', asked)
    return [...found?.targets ?? [], found?.on.contextLength].map(target => target?.model)
  }
  t.strictSame(named(['openai/*'], '*', 'openai/gpt-5.2'), ['gpt-5.2', 'plain', null, 'gpt-5.2'])
  t.strictSame(named(['openai/*', 'azure/*-eu'], 'x/*', 'azure/gpt-eu'), ['x/gpt', 'plain', null, 'x/gpt'])
  t.strictSame(named(['openai/*'], '*', 'openai/$&'), ['$&', 'plain', null, '$&'])
  t.strictSame(named(['*'], 'v-*', 'm'), ['v-m', 'plain', null, 'v-m'])
})
