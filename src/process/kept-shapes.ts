import { executionAsyncResource } from 'node:async_hooks'

/** What is held for its shape alone. */
const retained: object[] = []

/**
 * Keeps `process.nextTick` as fast as it is at first. Node makes an object for each call, and V8
 * notes which shapes that object has while it is being made. A full collection at a moment when
 * nothing waits for its tick takes these shapes away; those that are made next are others, which V8
 * takes for a sign that they vary: from then on each call asks the runtime, seven times as slow, for
 * the rest of the process (bench/ticks.ts). One such object that stays keeps the shapes.
 *
 * Source: V8's Runtime_DefineKeyedOwnPropertyInLiteral, which knows one shape or any.
 *
 * @returns the object, once it has been held
 */
export function keepShapeOfTicks(): Promise<object> {
  return new Promise(resolve => {
    process.nextTick(() => {
      const tick = executionAsyncResource()
      retained.push(tick)
      resolve(tick)
    })
  })
}
