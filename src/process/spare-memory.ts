import { Session } from 'node:inspector'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from '../base/clock.ts'

const CHECK_INTERVAL_MS = 500
/** The start counts as finished if the process worked for less than this many ms in the interval. */
const MAX_IDLE_WORK = 10
/**
 * Maximum ms of work after which the start's garbage is still collected. V8 drops compiled code with the garbage, and about ten thousand
 * requests after a collection cost twice as much.
 */
const MAX_WORK = 250
const LOAD_CHECK_INTERVAL_MS = 10_000
/** A load counts as ended if the process worked for less than this many ms in the interval. */
const MAX_REST_WORK = 100
/**
 * Number of collections of young objects after a load. V8 shrinks the space of young objects at the second collection, because few objects
 * were allocated since the first. It returns the pages to the system at the third.
 */
const YOUNG_COLLECTIONS = 3
/** ms after which a collection has finished. */
const COLLECTION_TIME = 2_000
/** Minimum bytes of garbage for which a collection is worth its time: the bytes above the lowest level since the last collection. */
const MIN_GARBAGE = 64 * 1024 * 1024
/** Minimum garbage as a share of the lowest level, because a collection takes longer if more memory is in use. */
const MIN_GARBAGE_SHARE = 0.5

export interface MeasuredProcess {
  /** ms of CPU that the calling thread has used. The time of other threads does not count as work. */
  activeTime(): number
  /** Bytes that V8 has allocated for its heap and for buffers outside of it, including garbage. */
  memory(): number
  /** Returns all garbage to the system. Blocks for 50 to 100 ms, plus about 1.5 ms for each MB of objects in use. */
  collect(): void
  /** Collects only young objects. Takes a few ms, and keeps compiled code. */
  collectYoung(): void
}

/**
 * Collects the garbage of the start once, when the process is idle for the first time, because V8 would keep about 20 MB of garbage. If the
 * gateway is busy from the start, the garbage stays.
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
 * Collects the garbage of a load when the process is idle again. V8 itself collects only while the process allocates more, and would keep
 * 50 MB for young objects, and the buffers of streams that have ended.
 */
export function collectGarbageOfLoads(clock: Clock, measured: MeasuredProcess = thisProcess): void {
  let activeBefore = measured.activeTime()
  let youngCollections = 0
  /** The lowest memory use since the last collection, or since the start. */
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
    // Uses a command of the inspector in a session inside the process. No port is opened.
    const session = new Session()
    session.connect()
    // Disconnect later: a session that disconnects in its own callback hangs the process.
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()))
  },
  collectYoung: () => {
    youngCollector ??= exposedCollector()
    youngCollector({ type: 'minor' })
  },
}

let youngCollector: NodeJS.GCFunction | null = null

/** V8's function `gc`. It exists only in a context that is created while the flag is set. */
function exposedCollector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc')
  const collector = runInNewContext('gc') as NodeJS.GCFunction
  setFlagsFromString('--no-expose-gc')
  return collector
}
