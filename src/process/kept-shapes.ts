import { executionAsyncResource } from 'node:async_hooks'

/** Objects that are kept only so that V8 keeps their shapes. */
const retained: object[] = []

/**
 * Keeps `process.nextTick` fast. V8 records the shapes of the object that node creates for each call. A full collection drops these shapes
 * if no tick is waiting. The next objects then have new shapes, from which V8 concludes that shapes vary: for the rest of the process, each
 * call goes to the runtime and takes seven times as long (bench/ticks.ts). An object that is kept prevents this. Source: V8's
 * Runtime_DefineKeyedOwnPropertyInLiteral, which handles either one shape or any.
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
