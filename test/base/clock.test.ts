import t from 'tap'
import { isoTime, systemClock, within } from '../../src/base/clock.ts'
import type { MonotonicTime, WallTime } from '../../src/base/clock.ts'

t.test('the type checker accepts neither a wall time as a monotonic time nor a monotonic time as a wall time', async t => {
  const wall: WallTime = systemClock.wall()
  const monotonic: MonotonicTime = systemClock.monotonic()
  t.match(isoTime(wall), /^20/)
  // @ts-expect-error a day in 1970
  t.match(isoTime(monotonic), /^1970/)
  // @ts-expect-error a duration of decades
  const deadline: MonotonicTime = wall
  t.ok(deadline > monotonic)
})

t.test('`within` settles with the promise, or after the given time', async t => {
  await within(systemClock, 60_000, Promise.resolve())
  const alive = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(alive))
  await within(systemClock, 1, new Promise<void>(() => undefined))
  await t.rejects(within(systemClock, 60_000, Promise.reject(new Error('no'))), { message: 'no' })
})
