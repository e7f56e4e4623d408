import { Session } from 'node:inspector'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
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
/** Milliseconds between two checks whether a load is over. */
const LOAD_INTERVAL = 10_000
/** Milliseconds of work in that time below which it is. */
const MAX_REST_WORK = 100
/**
 * Collections of young objects after a load: V8 makes their space smaller only at the second, when it sees how little
 * was allocated, and returns its pages to the system at the third.
 */
const YOUNG_COLLECTIONS = 3
/** Milliseconds after which a collection is over. */
const COLLECTION_TIME = 2_000
/** Bytes more than after the last collection from which another one is worth its time. */
const MIN_GARBAGE = 64 * 1024 * 1024
/** The same as a share of what was left, because a collection takes longer the more memory is in use. */
const MIN_GARBAGE_SHARE = 0.5

export interface MeasuredProcess {
  /** @returns milliseconds of CPU of the calling thread so far: time in which others had the processor is no work */
  activeTime(): number
  /** @returns bytes that V8 has taken for its heap, and of the buffers beside it, garbage included */
  memory(): number
  /**
   * Collects all garbage and returns its memory to the system. Nothing else runs meanwhile: 50 to 100 ms, and about
   * 1.5 ms for each further MB of objects in use.
   */
  collect(): void
  /** Collects young objects only: a few milliseconds, and compiled code stays. */
  collectYoung(): void
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

/**
 * Collects the garbage of a load when the process has rested since: V8 does so only while more is allocated, and would
 * keep 50 MB for young objects, and the buffers of streams that have ended.
 *
 * @param clock times the checks
 * @param measured the process to collect
 */
export function collectGarbageOfLoads(clock: Clock, measured: MeasuredProcess = thisProcess): void {
  let activeBefore = measured.activeTime()
  let youngCollections = 0
  /** The least since the last collection, or since the start. */
  let least = measured.memory()
  clock.setTimeout(function check(): void {
    const active = measured.activeTime()
    const memory = measured.memory()
    least = Math.min(least, memory)
    const rests = active - activeBefore < MAX_REST_WORK
    activeBefore = active
    if (!rests) youngCollections = YOUNG_COLLECTIONS
    else if (youngCollections-- > 0) measured.collectYoung()
    if (rests && memory - least > Math.max(MIN_GARBAGE, least * MIN_GARBAGE_SHARE)) {
      measured.collect()
      clock.setTimeout(() => (least = measured.memory()), COLLECTION_TIME)
    }
    clock.setTimeout(check, LOAD_INTERVAL)
  }, LOAD_INTERVAL)
}

/** The process that this module runs in. */
export const thisProcess: MeasuredProcess = {
  activeTime: () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  },
  memory: () => {
    const { total_heap_size: heap, external_memory: buffers } = getHeapStatistics()
    return heap + buffers
  },
  collect: () => {
    // The inspector's own command: a session inside the process, no port.
    const session = new Session()
    session.connect()
    // A session that ends within its own response hangs the process.
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()))
  },
  collectYoung: () => {
    youngCollector ??= exposedCollector()
    youngCollector({ type: 'minor' })
  },
}

let youngCollector: NodeJS.GCFunction | null = null

/** V8's `gc`, which only a new context has, and only while the flag is set. */
function exposedCollector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc')
  const collector = runInNewContext('gc') as NodeJS.GCFunction
  setFlagsFromString('--no-expose-gc')
  return collector
}
