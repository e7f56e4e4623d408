import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { keyFileOf } from '../auth/key-file.ts'
import { KeySync } from '../auth/key-sync.ts'
import { systemClock } from '../base/clock.ts'
import type { Config } from '../config/types.ts'
import type { Gateway } from '../context/gateway.ts'
import { Heartbeat } from '../context/heartbeat.ts'

/** What a process has to do with the other gateways, beside its requests. */
export interface ClusterMember {
  /** Resolves when the keys are those of all gateways, or after a while without PostgreSQL. */
  ready(): Promise<void>
  /** Says that this process ends, and closes the connections. */
  close(): Promise<void>
}

/** @returns null where the gateways share nothing in PostgreSQL */
export function joinCluster(
  { cluster, ledger }: Config, { version, log }: { readonly version: string, readonly log: Logger }, gateway: () => Gateway,
): ClusterMember | null {
  if (cluster === null || cluster.postgres === null || ledger === null) return null
  const { postgres: url, instance } = cluster
  const common = { url, instance, process: randomUUID(), clock: systemClock }
  const keySync = new KeySync({
    ...common,
    file: keyFileOf(ledger.file),
    onChanged: () => gateway().keyStore?.refresh(),
    onFailure: why => log.error({ why }, 'keys in PostgreSQL cannot be read: the keys read before stay in force'),
    onRecovered: () => log.warn('keys in PostgreSQL can be read again'),
    onRenamed: (from, to) => log.warn({ key: from, to }, 'another gateway has a key of this name: this one got another name'),
  })
  const heartbeat = new Heartbeat({
    ...common,
    version,
    log,
    state: () => {
      const { sharedState, accounts } = gateway()
      return {
        requestsInFlight: sharedState.activeExchanges.size,
        outboxRows: accounts.shipping?.stats().pending ?? 0,
        keyChange: keySync.applied,
      }
    },
  })
  return {
    ready: () => keySync.ready(),
    close: async () => {
      keySync.close()
      await heartbeat.close()
    },
  }
}
