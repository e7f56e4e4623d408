import cluster from 'node:cluster'
import type { Worker } from 'node:cluster'
import { createCapsuleKey } from '../base/secrets/capsule-keys.ts'
import { systemClock } from '../base/clock.ts'
import { compileGlob } from '../config/glob.ts'
import { openClusterLimits } from '../cluster/limits/cluster-limits.ts'
import { LeaseServer } from '../limits/workers/lease-server.ts'
import type { GatewayParts, PassedShares } from '../pipeline/parts/gateway.ts'
import { createLimiter } from '../limits/limiter.ts'
import { closeUnacceptedConnections } from './connection-handoff.ts'
import type { ControlRequest, ProcessStatus, ReloadReport } from './control.ts'
import { superviseMetrics } from './supervisor-metrics.ts'
import type { WorkerStart, Listening, SupervisorMessage, WorkerMessage } from './worker-messages.ts'

export interface Supervisor {
  /** Resolves when all workers listen. Resolves to null if a worker failed to listen, when all workers have ended. */
  readonly ready: Promise<Listening | null>
  /** Resolves when all workers have ended after `drain` or `close`; true = a worker failed, or cut off an exchange. */
  readonly ended: Promise<boolean>
  reload(): void
  drain(): void
  close(): void
  status(): Promise<readonly ProcessStatus[]>
  requestReload(by: string): Promise<ReloadReport>
}

const MIN_RESTART_DELAY_MS = 100
const MAX_RESTART_DELAY_MS = 10_000
/** ms in which workers must close, or must end after draining. */
const CLOSE_TIMEOUT = 5_000
/** ms between two reports of the spend to the worker that sends alerts. */
const SPEND_INTERVAL = 2_000
/** ms after which a worker counts as stable, so that its restart delay is reset. */
const STABLE_AFTER = 60_000
const CONTROL_TIMEOUT_MS = 50_000

/**
 * Runs the same command in several worker processes, and replaces each worker that dies. The workers share the listening sockets and the
 * limits. A new worker starts with the configuration that is active in the other workers.
 * @param drain ms in which workers drain; a reload can change it
 */
export function supervise(
  count: number, drain: number, beginning: WorkerStart, { log, version }: Pick<GatewayParts, 'log' | 'version'>,
): Supervisor {
  cluster.setupPrimary({ serialization: 'advanced' })
  const limiter = createLimiter({ defaults: null, compileGlob, clock: systemClock })
  const shared = openClusterLimits(beginning.start.cluster, log)
  const leaseServer = shared?.limits ?? new LeaseServer(limiter, systemClock)
  const ended = Promise.withResolvers<boolean>()
  void ended.promise.then(() => {
    clearInterval(spendTimer)
    return shared?.close()
  })
  const metrics = superviseMetrics({
    config: beginning.start.telemetry, log, version, limiter: shared?.limits ?? limiter,
    askWorkers: () => order({ kind: 'metrics' }),
    workers: () => running().map(({ id }) => id),
  })
  const ready = Promise.withResolvers<Listening | null>()
  const delays = new Set<NodeJS.Timeout>()
  const listeningWorkers = new Set<Worker>()
  /** Control requests to which a worker has not responded yet, by id. */
  const questions = new Map<number, (result: unknown) => void>()
  let lastQuestion = 0
  let reporter: Worker | null = null
  let passedShares: PassedShares['initial'] = null
  // Send no spend until all workers listen, because the past spend may not be counted yet.
  const spendTimer = setInterval(() => {
    if (isReady && reporter !== null && reporter.isConnected()) sendToWorker(reporter, { kind: 'spend', spend: (shared?.limits ?? limiter).budgetSpend() })
  }, SPEND_INTERVAL).unref()
  let isReady = false
  let isEnding = false
  let failed = false
  const capsuleKey = createCapsuleKey(systemClock.wall())
  let { text } = beginning
  let drainWithin = drain

  // Leave out dead workers: node lists a worker until its channel is closed too.
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
    // Kill workers that have not ended in time.
    const force = () => running().forEach(worker => worker.process.kill('SIGKILL'))
    setTimeout(force, kind === 'close' ? CLOSE_TIMEOUT : drainWithin + CLOSE_TIMEOUT).unref()
    if (running().length === 0) ended.resolve(failed)
  }

  /** @param reportsAlerts true for one worker, and for each worker that replaces it */
  const start = (patience: number, reportsAlerts: boolean): void => {
    const startedAt = performance.now()
    /** Replaces the worker, unless all workers are ending, or no worker has started successfully. */
    const replace = (how: object, isAtFault: boolean): void => {
      if (isAtFault) failed ||= isEnding || !isReady
      if (isEnding) {
        if (running().length === 0) ended.resolve(failed)
        return
      }
      if (!isReady) {
        ready.resolve(null)
        return end('close')
      }
      const next = performance.now() - startedAt > STABLE_AFTER ? MIN_RESTART_DELAY_MS : patience
      log.error({ ...how, again_ms: next }, 'worker ended: starting another')
      const delay = setTimeout(() => {
        delays.delete(delay)
        start(Math.min(MAX_RESTART_DELAY_MS, next * 2), reportsAlerts)
      }, next)
      delays.add(delay)
    }
    let worker: Worker
    try {
      worker = cluster.fork()
    } catch (err) {
      // The system refused a new process, for example because memory is short. Other failures emit `error`.
      log.error({ err }, 'worker could not be started')
      return replace({}, true)
    }
    closeUnacceptedConnections(worker)
    const connection = leaseServer.connect(replies => sendToWorker(worker, { kind: 'limits', replies }))
    if (reportsAlerts) reporter = worker
    sendToWorker(worker, { kind: 'begin', beginning: { ...beginning, text, reportsAlerts, passedShares, capsuleKey } })
    let isOver = false
    const over = (code: number | null, signal: string | null): void => {
      isOver = true
      connection.close()
      metrics.workerEnded(worker.id)
      listeningWorkers.delete(worker)
      // Disconnect the worker, because node:cluster gives new connections to each connected worker.
      if (worker.isConnected()) worker.disconnect()
      replace({ worker: worker.id, pid: worker.process.pid, code, signal }, code !== 0)
    }
    worker.on('error', err => {
      // Ignore an error of a message to a worker that has just ended.
      if (worker.process.pid !== undefined || isOver) return
      // Node emits no `exit` event for a worker that could not be started.
      log.error({ worker: worker.id, err }, 'worker could not be started')
      over(null, null)
    })
    worker.on('message', (report: WorkerMessage) => {
      if (report.kind === 'limits') return connection.handle(report.requests)
      if (report.kind === 'metrics') return metrics.add(worker.id, report.report)
      if (report.kind === 'control') return questions.get(report.id)?.(report.result)
      if (report.kind === 'passed') {
        passedShares = report.shares
        return
      }
      if (report.kind === 'reloaded') {
        if (report.text === text) return
        text = report.text
        drainWithin = report.drain
        // Workers that are still starting have the previous text, so they must reload.
        for (const other of running()) if (!listeningWorkers.has(other)) sendToWorker(other, { kind: 'reload' })
        return
      }
      listeningWorkers.add(worker)
      if (isReady) {
        log.info({ worker: worker.id, pid: worker.process.pid }, 'worker listens again')
      } else if (listeningWorkers.size === count) {
        isReady = true
        const { listening } = report
        metrics.open().then(url => ready.resolve({ ...listening, addresses: { ...listening.addresses, metrics: url } }), ready.reject)
      } else if (listeningWorkers.size === 1) {
        // The other workers start when the first worker listens.
        for (let n = 1; n < count; n++) start(MIN_RESTART_DELAY_MS, false)
      }
    })
    worker.once('exit', over)
  }

  /** Collects the responses of all workers that listen. Workers that end or hang are left out. */
  const askEach = async (request: ControlRequest): Promise<unknown[]> => {
    const results = await Promise.all([...listeningWorkers].map(async worker => {
      const id = ++lastQuestion
      const { promise, resolve } = Promise.withResolvers<unknown>()
      const giveUp = (): void => resolve(undefined)
      questions.set(id, resolve)
      worker.once('exit', giveUp)
      const timer = setTimeout(giveUp, CONTROL_TIMEOUT_MS)
      sendToWorker(worker, { kind: 'control', id, request })
      const result = await promise
      clearTimeout(timer)
      worker.off('exit', giveUp)
      questions.delete(id)
      return result
    }))
    return results.filter(result => result !== undefined)
  }

  start(MIN_RESTART_DELAY_MS, true)
  return {
    status: async () => (await askEach({ kind: 'status' }) as ProcessStatus[][]).flat(),
    requestReload: async by => {
      const reports = await askEach({ kind: 'reload', by }) as ReloadReport[]
      // Report a rejection by any worker, because all workers read the same file.
      return reports.find(({ applied }) => !applied) ?? reports[0] ?? { applied: false, problems: ['no worker has responded'] }
    },
    ready: ready.promise,
    ended: ended.promise.finally(() => metrics.close()),
    reload: () => order({ kind: 'reload' }),
    drain: () => end('drain'),
    close: () => end('close'),
  }
}

function sendToWorker(worker: Worker, message: SupervisorMessage): void {
  if (worker.isConnected()) worker.send(message)
}
