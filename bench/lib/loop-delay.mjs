// To be imported into a process from outside: the first SIGUSR2 begins to watch
// its event loop, the next prints the longest delay to standard error.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  let watch = null
  process.on('SIGUSR2', () => {
    if (watch === null) {
      watch = monitorEventLoopDelay({ resolution: 1 })
      watch.enable()
      return
    }
    watch.disable()
    process.stderr.write(`longest stall of the event loop: ${(watch.max / 1e6).toFixed(1)} ms, ` +
      `p99 ${(watch.percentile(99) / 1e6).toFixed(1)} ms\n`)
    watch = null
  })
}
