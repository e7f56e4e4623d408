import t from 'tap'
import { cached } from '../../../src/console/http/cached.ts'

function setUp() {
  let now = 1000
  let loads = 0
  let failure: Error | null = null
  const read = cached(async () => {
    const count = ++loads
    if (failure) throw failure
    return count
  }, 100, () => now)
  return { read, pass: (ms: number) => { now += ms }, fail: (error: Error | null) => { failure = error } }
}

t.test('a cached result expires after its time', async t => {
  const { read, pass } = setUp()
  t.equal(await read(), 1)
  pass(99)
  t.equal(await read(), 1)
  pass(1)
  t.equal(await read(), 2)
})

t.test('concurrent calls share one load', async t => {
  const { read } = setUp()
  t.strictSame(await Promise.all([read(), read(), read()]), [1, 1, 1])
})

t.test('a failure is not cached', async t => {
  const { read, fail } = setUp()
  fail(new Error('away'))
  await t.rejects(read(), { message: 'away' })
  fail(null)
  t.equal(await read(), 2)
})

t.test('a load that fails after a newer load has started does not remove the newer result', async t => {
  let now = 0
  const loads: PromiseWithResolvers<string>[] = []
  const read = cached(() => {
    const load = Promise.withResolvers<string>()
    loads.push(load)
    return load.promise
  }, 100, () => now)
  const first = read()
  now = 100
  const second = read()
  loads[0]?.reject(new Error('late'))
  await t.rejects(first)
  loads[1]?.resolve('new')
  t.equal(await second, 'new')
  t.equal(await read(), 'new')
  t.equal(loads.length, 2)
})
