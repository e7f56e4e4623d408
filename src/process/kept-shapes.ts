import { executionAsyncResource } from 'node:async_hooks'

/** Objects that are kept only for their shape. */
const retained: object[] = []

/**
 * Keeps `process.nextTick` fast. V8 records the shapes of the object that node creates for each call. A full collection while
 * no tick is waiting drops these shapes. V8 takes the new shapes of the next objects as a sign that shapes vary: each call then
 * goes to the runtime and takes seven times as long, for the rest of the process (bench/ticks.ts). A kept object keeps shapes.
 * Source: V8's Runtime_DefineKeyedOwnPropertyInLiteral, which handles either one shape or any. @returns the kept object
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
