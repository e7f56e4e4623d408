import fc from 'fast-check'
import t from 'tap'
import type { Target } from '../../src/config/types.ts'
import { candidateId } from '../../src/routing/candidate.ts'
import { chooseOrder } from '../../src/routing/choose.ts'
import { Health } from '../../src/routing/health.ts'
import { FakeClock } from '../support/fake-clock.ts'

type Strategy = Parameters<typeof chooseOrder>[0]['strategy']

function target(name: string, weight = 1, model: string | null = null): Target {
  return { upstream: { name } as Target['upstream'], model, weight, prefill: false }
}

/** A sequence of numbers that looks random and is the same each time. */
function dice(seed = 1): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state / 2 ** 31
  }
}

function setUp(targets: readonly Target[], strategy: Strategy, random = dice()) {
  const clock = new FakeClock()
  clock.advance(1_000)
  const health = new Health({ clock, random: () => 1 })
  const order = (affinity: string | null = null) =>
    chooseOrder({ targets, strategy }, { health, random, model: 'm', affinity }).map(
      each => each.upstream.name,
    )
  const id = (name: string) => candidateId(targets.find(each => each.upstream.name === name) as Target, 'm')
  const firsts = (times: number, affinity?: (n: number) => string) => {
    const counts: Record<string, number> = {}
    for (let n = 0; n < times; n++) {
      const [first = ''] = order(affinity?.(n) ?? null)
      counts[first] = (counts[first] ?? 0) + 1
    }
    return counts
  }
  const open = (name: string) => {
    for (let n = 0; n < 3; n++) health.begin(id(name)).failed(null)
  }
  return { clock, health, order, id, firsts, open }
}

t.test('ordered: targets keep their order', t => {
  const { order } = setUp([target('a'), target('b'), target('c')], 'ordered')
  t.strictSame(order(), ['a', 'b', 'c'])
  t.end()
})

t.test('unhealthy targets come last, in the order in which their pauses end', t => {
  const { clock, order, open } = setUp([target('a'), target('b'), target('c')], 'ordered')
  open('b')
  clock.advance(100)
  open('a')
  t.strictSame(order(), ['c', 'b', 'a'])
  open('c')
  t.strictSame(order(), ['b', 'a', 'c'], 'all targets are unhealthy')
  clock.advance(900)
  t.strictSame(order(), ['b', 'a', 'c'], 'a target whose pause ended can be probed')
  t.end()
})

t.test('weighted: targets get requests in proportion to their weights', t => {
  const { firsts } = setUp([target('a', 1), target('b', 3), target('c', 6)], 'weighted')
  const { a = 0, b = 0, c = 0 } = firsts(10_000)
  t.ok(Math.abs(a - 1_000) < 150 && Math.abs(b - 3_000) < 200 && Math.abs(c - 6_000) < 200, `${a} ${b} ${c}`)
  t.end()
})

t.test('least_busy: the target with the fewest running requests per weight is first', t => {
  const { health, order, id } = setUp([target('a'), target('b'), target('c', 4)], 'least_busy')
  health.begin(id('a'))
  health.begin(id('c'))
  health.begin(id('c'))
  t.strictSame(order(), ['b', 'c', 'a'])
  t.end()
})

t.test('least_busy: targets are ordered by running requests divided by weight, for weights above and below 1', t => {
  const { health, order, id } = setUp([target('a', 4), target('b', 2), target('c', 0.5)], 'least_busy')
  for (const name of ['a', 'a', 'b', 'b', 'c']) health.begin(id(name))
  for (let n = 0; n < 50; n++) t.strictSame(order(), ['a', 'b', 'c'])
  t.end()
})

t.test('least_busy: requests are shared between equally busy targets', t => {
  const { firsts } = setUp([target('a'), target('b')], 'least_busy')
  const { a = 0, b = 0 } = firsts(1_000)
  t.ok(a > 400 && b > 400, `${a} ${b}`)
  t.end()
})

t.test('fastest: the faster of two random targets is chosen, so that no target gets all requests', t => {
  const { health, firsts, id } = setUp([target('a'), target('b'), target('c')], 'fastest')
  for (const [name, ms] of [['a', 10], ['b', 50], ['c', 500]] as const) {
    const trial = health.begin(id(name))
    trial.responseStarted(ms)
    trial.succeeded()
  }
  const { a = 0, b = 0, c = 0 } = firsts(3_000)
  t.ok(a > 1_800 && b > 800 && c === 0, `${a} ${b} ${c}`)
  t.end()
})

t.test('fastest: the first target is the faster of two random targets, and the other targets are ordered by speed', t => {
  const { health, order, id } = setUp(['a', 'b', 'c', 'd'].map(name => target(name)), 'fastest')
  const times = { a: 10, b: 500, c: 50, d: 600 }
  for (const [name, ms] of Object.entries(times)) {
    const trial = health.begin(id(name))
    trial.responseStarted(ms)
    trial.succeeded()
  }
  const firsts = new Set<string>()
  for (let n = 0; n < 200; n++) {
    const [first = '', ...others] = order()
    firsts.add(first)
    t.strictSame(others, ['a', 'c', 'b', 'd'].filter(name => name !== first))
  }
  t.strictSame([...firsts].toSorted(), ['a', 'b', 'c'], 'the slowest target is never first')
  t.end()
})

t.test('fastest: an unmeasured target comes first, and a running request makes a target count as slower', t => {
  const { health, order, id } = setUp([target('a'), target('b')], 'fastest')
  const trial = health.begin(id('a'))
  trial.responseStarted(10)
  trial.succeeded()
  t.strictSame(order(), ['b', 'a'])
  const other = health.begin(id('b'))
  other.responseStarted(15)
  other.succeeded()
  t.strictSame(order(), ['a', 'b'])
  health.begin(id('a'))
  t.strictSame(order(), ['b', 'a'], '2 x 10 is more than 15')
  t.end()
})

t.test('affinity: a value always selects the same target, and values are spread by weight', t => {
  const { order, firsts } = setUp([target('a', 1), target('b', 1), target('c', 2)], 'weighted')
  t.strictSame(order('session-1'), order('session-1'))
  const { a = 0, b = 0, c = 0 } = firsts(4_000, n => `session-${n}`)
  t.ok(Math.abs(a - 1_000) < 150 && Math.abs(b - 1_000) < 150 && Math.abs(c - 2_000) < 150, `${a} ${b} ${c}`)
  t.end()
})

t.test('affinity: if a target is removed, only the values of this target move', t => {
  const all = setUp([target('a'), target('b'), target('c')], 'ordered')
  const fewer = setUp([target('a'), target('c')], 'ordered')
  for (let n = 0; n < 500; n++) {
    const [before] = all.order(`s${n}`)
    if (before !== 'b') t.equal(fewer.order(`s${n}`)[0], before)
  }
  t.end()
})

t.test('affinity: an unhealthy target is not chosen', t => {
  const { order, open } = setUp([target('a'), target('b')], 'ordered')
  const [first = ''] = order('s')
  open(first)
  t.not(order('s')[0], first)
  t.end()
})

t.test('every order contains each target once', t => {
  fc.assert(fc.property(
    fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 }),
    fc.constantFrom<Strategy>('ordered', 'weighted', 'least_busy', 'fastest'),
    fc.integer({ min: 1, max: 1_000 }), fc.option(fc.string()), fc.nat(), fc.array(fc.nat(7)),
    (names, strategy, weight, affinity, seed, broken) => {
      const { order, open } = setUp(
        names.map((name, n) => target(name, n === 0 ? weight : 1)), strategy, dice(seed),
      )
      for (const n of broken) if (n < names.length) open(names[n] as string)
      return order(affinity).toSorted().join() === names.toSorted().join()
    },
  ))
  t.end()
})
