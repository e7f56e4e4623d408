import { Session } from 'node:inspector'
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Clock } from '../base/clock.ts'

/** Milliseconds until the start has settled, and then between two looks. */
const FIRST_CHECK_DELAY = 500
const CHECK_INTERVAL = 5_000
/**
 * Milliseconds without work before what a load has left is collected. V8 throws
 * compiled code away with the shapes of objects that nobody has just then: the
 * requests after a collection cost twice as much, for some ten thousand of them.
 */
const IDLE_BEFORE_COLLECTION = 5 * 60_000
/** Milliseconds of work since the start until which hardly anything is compiled that could be lost. */
const STARTUP_WORK = 250
/** The share of the time since the last look that was worked, below which the process counts as idle. */
const MAX_IDLE_SHARE = 0.02
/** Milliseconds of work since the last collection, itself included, after which another is worth its time. */
const MIN_WORK_BETWEEN = 250
/** Bytes: a larger heap takes longer to collect than somebody who comes meanwhile should wait. */
const MAX_HEAP_BYTES = 96 * 1024 * 1024

export interface MeasuredProcess {
  /** Milliseconds that the event loop has worked so far. */
  activeTime(): number
  /** Bytes of the heap that are used. */
  usedHeap(): number
  /** Collects all garbage and gives its memory back: some 50 ms in which nothing else is done. */
  collect(): void
}

/**
 * Gives memory back that only the start has needed, or a load that is long over:
 * left to itself, V8 keeps some 20 MB of it for as long as nothing makes it
 * collect.
 */
export function collectGarbageWhenIdle(clock: Clock, { activeTime: worked, usedHeap: heap, collect }: MeasuredProcess = thisProcess): void {
  let lookedAt = clock.monotonic()
  const started = worked()
  let workedThen = started
  /** What was worked at the last collection. */
  let workedBefore = -Infinity
  let idleSince = lookedAt
  const look = (): void => {
    const now = clock.monotonic()
    const work = worked()
    const isIdle = work - workedThen < (now - lookedAt) * MAX_IDLE_SHARE
    if (!isIdle) idleSince = now
    const isTime = isIdle && (work - started < STARTUP_WORK || now - idleSince >= IDLE_BEFORE_COLLECTION)
    if (isTime && work - workedBefore > MIN_WORK_BETWEEN && heap() < MAX_HEAP_BYTES) {
      collect()
      workedBefore = work
    }
    lookedAt = now
    workedThen = work
    clock.setTimeout(look, CHECK_INTERVAL)
  }
  clock.setTimeout(look, FIRST_CHECK_DELAY)
}

/** This process, in earnest. */
export const thisProcess: MeasuredProcess = {
  activeTime: () => performance.eventLoopUtilization().active,
  usedHeap: () => getHeapStatistics().used_heap_size,
  collect: () => {
    // The inspector's own command: a session inside the process, no port.
    const session = new Session()
    session.connect()
    // It is done in a turn of its own. A session that ends within its own answer hangs the process.
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()))
  },
}
