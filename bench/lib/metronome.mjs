// Tells its parent each `everyMs` (data of the worker), until the cell says 1: the time at which it was due to, in
// milliseconds of the system's monotonic clock, which threads share. Node's timers come a millisecond apart at best; a wait
// on memory is as exact as the system's own.
import { parentPort, workerData } from 'node:worker_threads'

const { cell, everyMs } = workerData
const now = () => Number(process.hrtime.bigint()) / 1e6
const notify = parentPort.postMessage.bind(parentPort)
for (let next = now() + everyMs; Atomics.load(cell, 0) === 0; next += everyMs) {
  Atomics.wait(cell, 0, 0, Math.max(0, next - now()))
  notify(next)
}
