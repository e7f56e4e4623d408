import { Session } from 'node:inspector'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from '../base/clock.ts'

const CHECK_INTERVAL_MS = 500
/** The start counts as finished when less than this many ms of work were done in the interval. */
const MAX_IDLE_WORK = 10
/**
 * After this many ms of work the start's garbage stays: V8 drops compiled code with it, and about ten thousand requests after
 * a collection cost twice as much.
 */
const MAX_WORK = 250
const LOAD_CHECK_INTERVAL_MS = 10_000
/** A load has ended when less than this many ms of work were done in the interval. */
const MAX_REST_WORK = 100
/**
 * After a load: V8 shrinks the space of young objects only at the second collection, when it sees how little was allocated,
 * and returns the pages to the system at the third.
 */
const YOUNG_COLLECTIONS = 3
/** ms after which a collection is finished. */
const COLLECTION_TIME = 2_000
/** Bytes above the level after the last collection from which another collection is worth its time. */
const MIN_GARBAGE = 64 * 1024 * 1024
/** As a share of that level: a collection takes longer the more memory is in use. */
const MIN_GARBAGE_SHARE = 0.5

export interface MeasuredProcess {
  /** ms of CPU of the calling thread so far: time in which other threads ran is not work. */
  activeTime(): number
  /** Bytes that V8 has allocated for its heap, and for buffers outside it, garbage included. */
  memory(): number
  /** Returns all garbage to the system. Blocks for 50 to 100 ms, and about 1.5 ms for each MB of objects in use. */
  collect(): void
  /** Collects only young objects: it takes a few milliseconds, and compiled code stays. */
  collectYoung(): void
}

/**
 * Collects the garbage of the start once, when the process is idle for the first time: V8 would keep about 20 MB of it. A
 * gateway that is busy from the start keeps it.
 */
export function collectGarbageOfStart(clock: Clock, { activeTime, collect }: MeasuredProcess = thisProcess): void {
  const started = activeTime()
  let before = started
  clock.setTimeout(function check(): void {
    const now = activeTime()
    if (now - before < MAX_IDLE_WORK) return collect()
    before = now
    if (now - started < MAX_WORK) clock.setTimeout(check, CHECK_INTERVAL_MS)
  }, CHECK_INTERVAL_MS)
}

/**
 * Collects the garbage of a load when the process is idle again: V8 collects only while more is allocated, and would keep 50 MB
 * for young objects and the buffers of streams that have ended.
 */
export function collectGarbageOfLoads(clock: Clock, measured: MeasuredProcess = thisProcess): void {
  let activeBefore = measured.activeTime()
  let youngCollections = 0
  /** The lowest value since the last collection, or since the start. */
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
    clock.setTimeout(check, LOAD_CHECK_INTERVAL_MS)
  }, LOAD_CHECK_INTERVAL_MS)
}

/** The process that runs this module. */
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
    // The inspector's command, in a session inside the process: no port is opened.
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

/** V8's `gc`, which exists only in a new context while the flag is set. */
function exposedCollector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc')
  const collector = runInNewContext('gc') as NodeJS.GCFunction
  setFlagsFromString('--no-expose-gc')
  return collector
}
