import cluster from 'node:cluster'
import type { Worker } from 'node:cluster'
import type { Logger } from 'pino'
import { systemClock } from '../base/clock.ts'
import { compileGlob } from '../config/glob.ts'
import { LeaseServer } from '../limits/lease-server.ts'
import { createLimiter } from '../limits/limiter.ts'
import { closeUnacceptedConnections } from './connection-handoff.ts'
import type { WorkerStart, Listening, SupervisorMessage, WorkerMessage } from './worker-messages.ts'

export interface Supervisor {
  /** Resolves when all workers listen; null when one could not, and all have ended. */
  readonly ready: Promise<Listening | null>
  /** Resolves when all workers have ended after `drain` or `close`: has one failed, or cut something off? */
  readonly ended: Promise<boolean>
  reload(): void
  drain(): void
  close(): void
}

/** Milliseconds until a worker that died has a successor: at first, and at most. */
const MIN_RESTART_DELAY = 100
const MAX_RESTART_DELAY = 10_000
/** Milliseconds that workers may take to close, and to end when they have drained. */
const CLOSE_TIMEOUT = 5_000
/** Milliseconds after which a worker that dies is one that worked. */
const STABLE_AFTER = 60_000

/**
 * Runs the same command as so many worker processes, which share its listening
 * sockets and its limits, and starts another for each that dies. A successor
 * begins with what is in force in the others.
 *
 * @param drain milliseconds in which workers have to have drained, until a reload says otherwise
 */
export function supervise(count: number, drain: number, beginning: WorkerStart, log: Logger): Supervisor {
  cluster.setupPrimary({ serialization: 'advanced' })
  const limiter = createLimiter({ defaults: null, compileGlob, clock: systemClock })
  const desk = new LeaseServer(limiter, systemClock)
  const ready = Promise.withResolvers<Listening | null>()
  const ended = Promise.withResolvers<boolean>()
  const delays = new Set<NodeJS.Timeout>()
  const told = new Set<Worker>()
  let isReady = false
  let isEnding = false
  let failed = false
  let { text } = beginning
  let drainWithin = drain

  // One that has died stays in the list until its line is closed too, which may be later.
  const running = (): Worker[] => Object.values(cluster.workers ?? {})
    .filter(worker => worker !== undefined)
    .filter(worker => !worker.isDead())
  const order = (what: SupervisorMessage): void => {
    for (const worker of running()) sendToWorker(worker, what)
  }
  const end = (kind: 'drain' | 'close'): void => {
    isEnding = true
    for (const delay of delays) clearTimeout(delay)
    order({ kind })
    // One that does not even do that hangs.
    const force = () => running().forEach(worker => worker.process.kill('SIGKILL'))
    setTimeout(force, kind === 'close' ? CLOSE_TIMEOUT : drainWithin + CLOSE_TIMEOUT).unref()
    if (running().length === 0) ended.resolve(failed)
  }

  const start = (patience: number): void => {
    const startedAt = performance.now()
    /** Another follows, unless all are to end or none has begun yet. */
    const followed = (how: object, isAtFault: boolean): void => {
      if (isAtFault) failed ||= isEnding || !isReady
      if (isEnding) {
        if (running().length === 0) ended.resolve(failed)
        return
      }
      if (!isReady) {
        ready.resolve(null)
        end('close')
        return
      }
      const next = performance.now() - startedAt > STABLE_AFTER ? MIN_RESTART_DELAY : patience
      log.error({ ...how, again_ms: next }, 'a worker has ended: another is started')
      const delay = setTimeout(() => {
        delays.delete(delay)
        start(Math.min(MAX_RESTART_DELAY, next * 2))
      }, next)
      delays.add(delay)
    }
    let worker: Worker
    try {
      worker = cluster.fork()
    } catch (err) {
      // For want of memory, say; of other lacks tells an event.
      log.error({ err }, 'a worker could not be started')
      followed({}, true)
      return
    }
    closeUnacceptedConnections(worker)
    const window = desk.connect(answers => sendToWorker(worker, { kind: 'limits', answers }))
    sendToWorker(worker, { kind: 'begin', beginning: { ...beginning, text } })
    let isOver = false
    const over = (code: number | null, signal: string | null): void => {
      isOver = true
      window.close()
      told.delete(worker)
      // Until then it would be handed connections.
      if (worker.isConnected()) worker.disconnect()
      followed({ worker: worker.id, pid: worker.process.pid, code, signal }, code !== 0)
    }
    worker.on('error', err => {
      // A message to one that has just gone.
      if (worker.process.pid !== undefined || isOver) return
      // Of this node tells no exit.
      log.error({ worker: worker.id, err }, 'a worker could not be started')
      over(null, null)
    })
    worker.on('message', (report: WorkerMessage) => {
      if (report.kind === 'limits') {
        window.handle(report.requests)
        return
      }
      if (report.kind === 'reloaded') {
        if (report.text === text) return
        text = report.text
        drainWithin = report.drain
        // Those that are about to begin have the text before.
        for (const other of running()) if (!told.has(other)) sendToWorker(other, { kind: 'reload' })
        return
      }
      told.add(worker)
      if (isReady) {
        log.info({ worker: worker.id, pid: worker.process.pid }, 'a worker listens again')
      } else if (told.size === count) {
        isReady = true
        ready.resolve(report.listening)
      } else if (told.size === 1) {
        // What one could not do, the others need not try.
        for (let n = 1; n < count; n++) start(MIN_RESTART_DELAY)
      }
    })
    worker.once('exit', over)
  }

  start(MIN_RESTART_DELAY)
  return {
    ready: ready.promise,
    ended: ended.promise,
    reload: () => order({ kind: 'reload' }),
    drain: () => end('drain'),
    close: () => end('close'),
  }
}

function sendToWorker(worker: Worker, message: SupervisorMessage): void {
  if (worker.isConnected()) worker.send(message)
}
