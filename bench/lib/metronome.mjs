// Tells its parent each `everyMs` (data of the worker), until the cell says 1. Node's timers come a millisecond apart at
// best; a wait on memory is as exact as the system's own.
import { parentPort, workerData } from 'node:worker_threads'

const { cell, everyMs } = workerData
const notify = parentPort.postMessage.bind(parentPort, null)
for (let next = performance.now() + everyMs; Atomics.load(cell, 0) === 0; next += everyMs) {
  Atomics.wait(cell, 0, 0, Math.max(0, next - performance.now()))
  notify()
}
