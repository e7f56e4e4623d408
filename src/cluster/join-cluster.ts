import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { keyFileOf } from '../auth/key-file.ts'
import { KeySync } from './keys/key-sync.ts'
import { systemClock } from '../base/clock.ts'
import { messageOf } from '../base/message-of.ts'
import type { ClusterConfig, ValkeyAddress } from '../config/cluster-types.ts'
import type { Config } from '../config/types.ts'
import { CircuitHints, HINTS_SCRIPT } from './hints/circuit-hints.ts'
import { Heartbeat } from './heartbeat.ts'
import type { CircuitLog } from '../routing/circuit-log.ts'
import type { Health } from '../routing/health.ts'
import type { StoreStates } from './store-states.ts'
import { Valkey } from './valkey/valkey.ts'

/** The exchange of this process with other gateways, apart from rows and limits. */
export interface ClusterMember {
  /** Resolves when all keys are known or, if PostgreSQL does not respond, after a timeout. */
  ready(): Promise<void>
  /** Tells the other gateways that this process ends, and closes the connections. */
  close(): Promise<void>
}

/** The state of this process after its last reload. */
export interface LocalState {
  readonly config: Pick<Config, 'upstreams'>
  readonly health: Health
  readonly keyStore: { refresh(): void } | null
  readonly accounts: { readonly shipping: { stats(): { readonly pending: number } } | null }
  readonly sharedState: {
    readonly circuits: CircuitLog
    readonly stores: StoreStates
    readonly activeExchanges: { readonly size: number }
  }
}

/** @returns null if the gateway is not in a cluster */
export function joinCluster(
  config: Config, parts: { readonly version: string, readonly log: Logger }, gateway: () => LocalState,
): ClusterMember | null {
  const { cluster } = config
  if (cluster === null) return null
  const process = randomUUID()
  const members = [
    ...cluster.postgres === null ? [] : [followDatabase(config, cluster.postgres, process, parts, gateway)],
    ...cluster.valkey === null ? [] : [shareCircuits(cluster, cluster.valkey, process, gateway)],
  ]
  return {
    ready: async () => void await Promise.all(members.map(member => member.ready())),
    close: async () => void await Promise.all(members.map(member => member.close())),
  }
}

function followDatabase(
  { cluster, ledger }: Config, url: string, process: string, { version, log }: { readonly version: string, readonly log: Logger },
  gateway: () => LocalState,
): ClusterMember {
  const { instance = '' } = cluster ?? {}
  const common = { url, instance, process, clock: systemClock }
  const keySync = ledger && new KeySync({
    ...common,
    file: keyFileOf(ledger.file),
    onChanged: () => gateway().keyStore?.refresh(),
    onFailure: why => log.error({ why }, 'keys in PostgreSQL cannot be read: the keys read before stay active'),
    onRecovered: () => log.warn('keys in PostgreSQL can be read again'),
    onRenamed: (from, to) => log.warn({ key: from, to }, 'another gateway has a key with this name: the key was renamed'),
  })
  const heartbeat = new Heartbeat({
    ...common,
    version,
    log,
    onBeat: failure => gateway().sharedState.stores.report('postgres', failure),
    state: () => {
      const { sharedState, accounts } = gateway()
      return {
        requestsInFlight: sharedState.activeExchanges.size,
        outboxRows: accounts.shipping?.stats().pending ?? 0,
        keyChange: keySync?.applied ?? null,
      }
    },
  })
  return {
    ready: async () => keySync?.ready(),
    close: async () => {
      keySync?.close()
      await heartbeat.close()
    },
  }
}

function shareCircuits(
  { instance, valkeyTimeout }: ClusterConfig, address: ValkeyAddress, process: string, gateway: () => LocalState,
): ClusterMember {
  const valkey = new Valkey(address, HINTS_SCRIPT, valkeyTimeout)
  const { health, sharedState: { circuits, stores } } = gateway()
  const hints = new CircuitHints({
    instance, process, health, circuits, clock: systemClock,
    knows: upstream => gateway().config.upstreams.has(upstream),
    // Report the store's state here, because this script writes every second, even without open circuits.
    run: async (keys, argument) => {
      const failure = (error: unknown) => {
        stores.report('valkey', messageOf(error))
        throw error
      }
      const found = await valkey.run(keys, argument).catch(failure)
      stores.report('valkey', null)
      return found
    },
  })
  return {
    ready: () => Promise.resolve(),
    close: async () => {
      hints.close()
      await valkey.close()
    },
  }
}
