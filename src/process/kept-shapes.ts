import { executionAsyncResource } from 'node:async_hooks'

/** Objects that are kept only for their shape. */
const retained: object[] = []

/**
 * Keeps `process.nextTick` fast. Node creates an object for each call, and V8 records the shapes that the object has
 * while it is created. A full collection while no tick is waiting drops these shapes. The next objects get new
 * shapes, which V8 takes as a sign that shapes vary: from then on each call goes to the runtime and takes seven times
 * as long, for the rest of the process (bench/ticks.ts). Keeping one such object keeps the shapes.
 *
 * Source: V8's Runtime_DefineKeyedOwnPropertyInLiteral, which handles either one shape or any.
 *
 * @returns the kept object
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
