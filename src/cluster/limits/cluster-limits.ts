import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { systemClock } from '../../base/clock.ts'
import type { ClusterConfig } from '../../config/cluster-types.ts'
import { compileGlob } from '../../config/glob.ts'
import type { Limits } from '../../config/key-types.ts'
import { clusterGroupSpend, clusterSpend } from '../ledger/cluster-spend.ts'
import { SharedLimits } from './shared-limits.ts'
import { SCRIPT } from './shared-script.ts'
import type { Limiter } from '../../limits/types.ts'
import { WorkerLimiter } from '../../limits/workers/worker-limiter.ts'
import { Database } from '../postgres/database.ts'
import { migrate } from '../postgres/migrate.ts'
import { Valkey } from '../valkey/valkey.ts'

/** Minimum ms between two log lines about an unreachable Valkey. */
const LOG_INTERVAL_MS = 60_000

/** The limits of all gateways, with the connections to their stores. */
export interface ClusterLimits {
  readonly limits: SharedLimits
  /** Resolves when Valkey has responded, or after a timeout. */
  ready(): Promise<void>
  /** Returns the leases, and closes the connections. */
  close(): Promise<void>
}

/** @returns null = the gateway counts limits only for itself */
export function openClusterLimits(cluster: ClusterConfig | null, log: Logger): ClusterLimits | null {
  if (cluster === null || cluster.valkey === null) return null
  const { valkey: address, postgres, instance, limitsOffline, valkeyTimeout } = cluster
  const valkey = new Valkey(address, SCRIPT, valkeyTimeout)
  const database = postgres === null ? null : new Database({ url: postgres, name: `gateway limits ${instance}` })
  let loggedAt = -Infinity
  const limits = new SharedLimits({
    // The name differs for each process, because a process that starts while another process drains must have its own leases.
    instance: `${instance} ${randomUUID()}`,
    offline: limitsOffline,
    compileGlob,
    clock: systemClock,
    store: valkey,
    spentOf: database && ((names, since) => migrate(database).then(() => clusterSpend(database, names, since))),
    groupSpentOf: database && ((groups, since) => migrate(database).then(() => clusterGroupSpend(database, groups, since))),
    onState: failure => {
      if (failure === null) return log.warn('shared limits can be used again')
      if (performance.now() - loggedAt < LOG_INTERVAL_MS) return
      loggedAt = performance.now()
      log.error({ failure, offline: limitsOffline }, 'shared limits cannot be used: no usable connection to Valkey')
    },
  })
  return {
    limits,
    ready: () => limits.ready(),
    close: async () => {
      await limits.close()
      await valkey.close()
      database?.close()
    },
  }
}

/** Creates this process's limiter, which applies the limits that all gateways share. */
export function clusterLimiter({ limits }: ClusterLimits, defaults: Limits | null): Limiter {
  const connection = limits.connect(replies => limiter.receive(replies))
  const limiter: WorkerLimiter = new WorkerLimiter(
    defaults, systemClock, requests => connection.handle(requests), () => limits.budgetSpend(),
  )
  return limiter
}
