import { Session } from 'node:inspector'
import { performance } from 'node:perf_hooks'
import type { Clock } from '../base/clock.ts'

/** Milliseconds between two checks. */
const CHECK_INTERVAL = 500
/** Milliseconds of work in that time below which the start counts as finished. */
const MAX_IDLE_WORK = 10
/**
 * Milliseconds of work after which nothing is collected: V8 drops compiled code with the garbage, and the
 * requests after a collection cost twice as much, for some ten thousand of them.
 */
const MAX_WORK = 250

export interface MeasuredProcess {
  /** @returns milliseconds that the event loop has worked since the start of the process */
  activeTime(): number
  /** Collects all garbage and returns its memory to the system: about 50 ms in which nothing else runs. */
  collect(): void
}

/**
 * Collects once the garbage of the start, when the process is idle for the first time: V8 keeps some 20 MB
 * of it otherwise. A gateway that has work from the start keeps it.
 *
 * @param clock times the checks
 * @param measured the process to collect
 */
export function collectGarbageOfStart(clock: Clock, { activeTime, collect }: MeasuredProcess = thisProcess): void {
  const started = activeTime()
  let before = started
  clock.setTimeout(function check(): void {
    const now = activeTime()
    if (now - before < MAX_IDLE_WORK) return collect()
    before = now
    if (now - started < MAX_WORK) clock.setTimeout(check, CHECK_INTERVAL)
  }, CHECK_INTERVAL)
}

/** The process that this module runs in. */
export const thisProcess: MeasuredProcess = {
  activeTime: () => performance.eventLoopUtilization().active,
  collect: () => {
    // The inspector's own command: a session inside the process, no port.
    const session = new Session()
    session.connect()
    // A session that ends within its own response hangs the process.
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()))
  },
}
