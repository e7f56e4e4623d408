import fc from 'fast-check'
import t from 'tap'
import { Bucket, MAX_PER_MINUTE } from '../../src/limits/bucket.ts'
import type { Hold } from '../../src/limits/bucket.ts'

const MINUTE = 60_000

t.test('a bucket admits the limit of a minute at once, and further requests at even intervals', async t => {
  const bucket = new Bucket(7, 0)
  for (let i = 0; i < 7; i++) {
    t.equal(bucket.wait(1, 0), 0)
    bucket.add(1, 0)
  }
  t.equal(bucket.wait(1, 0), 8572, 'a seventh of a minute, rounded up')
  t.equal(bucket.wait(1, 8571), 1)
  t.equal(bucket.remaining(8571), 0)
  t.equal(bucket.wait(1, 8572), 0)
  t.equal(bucket.remaining(8572), 1)
  t.equal(bucket.resetMs(8572), MINUTE - 8572)
  t.equal(bucket.resetMs(MINUTE), 0)
  t.ok(bucket.idle(MINUTE))
})

t.test('a rate that does not divide a minute evenly does not drift', async t => {
  const bucket = new Bucket(7, 0)
  let now = 0
  for (let i = 0; i < 7 + 7 * 1_000; i++) {
    now += bucket.wait(1, now)
    bucket.add(1, now)
  }
  t.equal(now, 1_000 * MINUTE)
})

t.test('an amount above the limit never fits, and an amount of 0 always fits', async t => {
  const bucket = new Bucket(100, 0)
  t.equal(bucket.wait(101, 0), Infinity)
  t.equal(bucket.wait(100, 0), 0)
  bucket.add(500, 0)
  t.equal(bucket.wait(0, 0), 0)
  t.equal(bucket.wait(1, 0), 4 * MINUTE + MINUTE / 100)
})

t.test('a limit of 0 admits nothing', async t => {
  const bucket = new Bucket(0, 0)
  t.equal(bucket.wait(1, 0), Infinity)
  t.equal(bucket.wait(1, 1e9), Infinity)
  bucket.add(5, 0)
  t.equal(bucket.remaining(0), 0)
  t.equal(bucket.resetMs(0), 0)
})

t.test('use beyond the limit drains at the rate of the limit', async t => {
  const bucket = new Bucket(1000, 0)
  const hold = bucket.hold(10, 0)
  bucket.settle(hold, 3010, 0)
  t.equal(bucket.remaining(0), 0)
  t.equal(bucket.resetMs(0), 3.01 * MINUTE)
  t.equal(bucket.wait(1000, 0), 3.01 * MINUTE)
})

t.test('after a huge overuse the level is a safe integer and drains', async t => {
  const bucket = new Bucket(1, 0)
  for (let i = 0; i < 10; i++) bucket.add(MAX_PER_MINUTE, 0)
  const reset = bucket.resetMs(0)
  t.ok(Number.isSafeInteger(reset))
  t.equal(bucket.resetMs(MINUTE), reset - MINUTE)
})

t.test('the level of a bucket does not change when the clock goes back', async t => {
  const bucket = new Bucket(10, 1_000_000)
  bucket.add(10, 1_000_000)
  t.equal(bucket.wait(1, 0), 6000)
  t.equal(bucket.wait(1, 1_000_000), 6000)
  t.equal(bucket.wait(1, 1_006_000), 0)
})

t.test('a changed rate keeps the earlier use', async t => {
  const bucket = new Bucket(60, 0)
  bucket.add(60, 0)
  bucket.setRate(90, 0)
  t.equal(bucket.perMinute, 90)
  t.equal(bucket.remaining(0), 30)
  bucket.setRate(30, 0)
  t.equal(bucket.remaining(0), 0)
  t.equal(bucket.wait(1, 0), 31 * 2000)
  bucket.setRate(600, 30_000)
  t.equal(bucket.remaining(30_000), 555, 'the level before the change drained at the old rate')
})

t.test('a bucket is idle if it is empty and no amount is held', async t => {
  const bucket = new Bucket(60, 0)
  const hold = bucket.hold(1, 0)
  t.notOk(bucket.idle(5000), 'empty')
  bucket.settle(hold, 2, 5000)
  t.notOk(bucket.idle(5999))
  t.ok(bucket.idle(6000))
})

t.test('a refund of a settled hold', async t => {
  t.test('a refund returns the whole difference while the bucket is in use', async t => {
    const bucket = new Bucket(1000, 0)
    const first = bucket.hold(500, 0)
    const second = bucket.hold(500, 0)
    bucket.settle(second, 0, 0)
    bucket.settle(first, 100, 0)
    t.equal(bucket.remaining(0), 900)
  })

  t.test('a refund does not return the part that has drained', async t => {
    const bucket = new Bucket(1000, 0)
    const old = bucket.hold(1000, 0)
    bucket.hold(1000, MINUTE)
    bucket.settle(old, 0, MINUTE)
    t.equal(bucket.remaining(MINUTE), 0, 'the first hold has drained')
  })

  t.test('a second refund does not return the drained part either', async t => {
    const bucket = new Bucket(1000, 0)
    const a = bucket.hold(500, 0)
    const b = bucket.hold(500, 0)
    bucket.hold(500, MINUTE / 2)
    bucket.settle(a, 0, MINUTE / 2)
    bucket.settle(b, 0, MINUTE / 2)
    t.equal(bucket.remaining(MINUTE / 2), 500)
  })
})

interface Poured {
  at: number
  amount: number
}

/** The reference: replays all amounts in order of time, each with its final value. */
function levelByReplay(history: readonly Poured[], perMinute: number, now: number): number {
  let level = 0
  let at = 0
  for (const poured of history.toSorted((a, b) => a.at - b.at)) {
    level = Math.max(0, level - (poured.at - at) * perMinute) + poured.amount * MINUTE
    at = poured.at
  }
  return Math.max(0, level - (now - at) * perMinute)
}

type Step =
  | { do: 'pass'; ms: number }
  | { do: 'hold'; amount: number }
  | { do: 'settle'; which: number; amount: number }
  | { do: 'split'; which: number; amount: number }

const perMinutes = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 3000 }))

function steps(perMinute: number): fc.Arbitrary<Step[]> {
  // Mostly small amounts, so that many requests run at once, and mostly less than the reserved amount.
  const amount = fc.oneof(fc.nat(Math.ceil(perMinute / 5)), fc.nat(Math.ceil(perMinute * 1.2)))
  return fc.array(fc.oneof(
    fc.record({ do: fc.constant('pass' as const), ms: fc.oneof(fc.nat(10_000), fc.nat(70_000)) }),
    fc.record({ do: fc.constant('hold' as const), amount }),
    fc.record({
      do: fc.constant('settle' as const),
      which: fc.nat(),
      amount: fc.oneof(fc.constant(0), amount),
    }),
    fc.record({ do: fc.constant('split' as const), which: fc.nat(), amount }),
  ), { maxLength: 60 })
}

const runs = perMinutes.chain(perMinute => fc.tuple(fc.constant(perMinute), steps(perMinute)))

t.test('property: the level is the same as if every final amount were known from the start', async () => {
  fc.assert(fc.property(runs, ([perMinute, steps]) => {
    const bucket = new Bucket(perMinute, 0)
    const history: Poured[] = []
    const open: { hold: Hold; poured: Poured }[] = []
    let now = 0
    for (const step of steps) {
      if (step.do === 'pass') now += step.ms
      if (step.do === 'hold' && bucket.wait(step.amount, now) === 0) {
        const poured = { at: now, amount: step.amount }
        history.push(poured)
        open.push({ hold: bucket.hold(step.amount, now), poured })
      }
      const whole = step.do === 'split' ? open[step.which % open.length] : undefined
      if (step.do === 'split' && whole !== undefined) {
        const poured = { at: whole.poured.at, amount: Math.min(step.amount, whole.poured.amount) }
        whole.poured.amount -= poured.amount
        history.push(poured)
        open.push({ hold: bucket.split(whole.hold, step.amount), poured })
      }
      const [settled] = step.do === 'settle' ? open.splice(step.which % (open.length || 1), 1) : []
      if (step.do === 'settle' && settled !== undefined) {
        bucket.settle(settled.hold, step.amount, now)
        const over = step.amount - settled.poured.amount
        if (over > 0) history.push({ at: now, amount: over })
        else settled.poured.amount = step.amount
      }
      const level = levelByReplay(history, perMinute, now)
      if (bucket.resetMs(now) !== Math.ceil(level / perMinute)) return false
      const remaining = Math.max(0, Math.floor(perMinute - level / MINUTE))
      if (bucket.remaining(now) !== remaining) return false
    }
    return true
  }), { numRuns: 3000 })
})

t.test('property: use in an interval is at most the limit for the length of the interval plus one minute', async () => {
  fc.assert(fc.property(runs, ([perMinute, steps]) => {
    const bucket = new Bucket(perMinute, 0)
    const used: Poured[] = []
    const open: { hold: Hold; poured: Poured }[] = []
    let now = 0
    for (const step of steps) {
      if (step.do === 'pass') now += step.ms
      if (step.do === 'hold' && bucket.wait(step.amount, now) === 0) {
        const poured = { at: now, amount: step.amount }
        used.push(poured)
        open.push({ hold: bucket.hold(step.amount, now), poured })
      }
      const [settled] = step.do === 'settle' ? open.splice(step.which % (open.length || 1), 1) : []
      if (step.do === 'settle' && settled !== undefined) {
        settled.poured.amount = Math.min(step.amount, settled.poured.amount)
        bucket.settle(settled.hold, settled.poured.amount, now)
      }
    }
    // A running request counts with its reserved amount, which is an upper bound.
    return used.every((first, i) => {
      let sum = 0
      return used.slice(i).every(({ at, amount }) => {
        sum += amount
        return sum * MINUTE <= perMinute * (MINUTE + at - first.at)
      })
    })
  }), { numRuns: 3000 })
})

t.test('the reported wait is exact', async () => {
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 5000 }),
    fc.array(fc.nat(3000), { maxLength: 5 }),
    fc.nat(3000),
    fc.nat(100_000),
    (perMinute, before, amount, now) => {
      const bucket = new Bucket(perMinute, 0)
      for (const poured of before) bucket.add(poured, 0)
      const wait = bucket.wait(amount, now)
      if (amount > perMinute) return wait === Infinity
      if (wait === 0) return true
      return bucket.wait(amount, now + wait - 1) === 1 && bucket.wait(amount, now + wait) === 0
    },
  ))
})
