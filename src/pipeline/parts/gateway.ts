import type { X509Certificate } from 'node:crypto'
import type { Logger } from 'pino'
import type { Attribution } from '../../attribution/attribution.ts'
import type { CapsuleKeyStore } from '../../cluster/keys/capsule-key-store.ts'
import type { KeyStore } from '../../auth/key-store.ts'
import type { Callers } from '../../auth/callers/callers.ts'
import type { Keyring } from '../../auth/keyring.ts'
import type { CapsuleKey } from '../../base/secrets/capsule-keys.ts'
import type { Clock } from '../../base/clock.ts'
import type { MemoryBudget } from '../../base/memory-budget.ts'
import type { EventLog } from '../../base/event-log.ts'
import type { ClientRequestIds } from '../../base/request-id.ts'
import type { Problem } from '../../config/problem.ts'
import type { ReloadEvent } from '../../config/reload-event.ts'
import type { Limits } from '../../config/key-types.ts'
import type { CheckSet } from '../../policy/checks/check-set.ts'
import type { EditSet } from '../../policy/edits/edit-set.ts'
import type { HookSet } from '../../policy/hooks/hook-set.ts'
import type { Config } from '../../config/types.ts'
import type { GuessLimit } from '../../limits/guess-limit.ts'
import type { Limiter } from '../../limits/types.ts'
import type { ProxyServer } from '../../proxy/upstream/http-proxy.ts'
import type { ReadTurns } from '../../proxy/http/read-turns.ts'
import type { CircuitLog } from '../../routing/circuit-log.ts'
import type { Health } from '../../routing/health.ts'
import type { RouteTable } from '../../routing/route-table.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { Archive } from '../../transcripts/archive.ts'
import type { Accounts } from './accounts.ts'
import type { ActiveExchanges, GatewayExchanges } from '../exchange/active-exchanges.ts'
import type { BodyRules } from './body-rules.ts'
import type { HealthChecks } from '../../upstreams/health-checks.ts'
import type { LiveTargets } from '../../upstreams/live-targets.ts'
import type { LiveUpstream } from '../../upstreams/live-upstreams.ts'
import type { StoreStates } from '../../cluster/store-states.ts'

/** The objects that the pipeline uses, built once from a configuration. After a reload, an exchange keeps the gateway it began with. */
export interface Gateway {
  readonly config: Config
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
  readonly keyring: Keyring
  /** null = no issuer of callers' tokens is configured. */
  readonly callers: Callers | null
  /** Keys created at run time; null = the configuration has no ledger. */
  readonly keyStore: KeyStore | null
  /** null = requests have neither users nor tags. */
  readonly attribution: Attribution | null
  /** null = the configuration has no checks. */
  readonly textChecks: CheckSet | null
  /** null = the configuration has no hooks. */
  readonly hooks: HookSet | null
  /** null = the configuration changes no request. */
  readonly edits: EditSet | null
  readonly routes: RouteTable
  readonly proxy: ProxyServer
  readonly accounts: Accounts
  readonly upstreams: ReadonlyMap<string, LiveUpstream>
  readonly targets: LiveTargets
  /** Running exchanges that began with this configuration, WebSockets included. */
  readonly activeExchanges: GatewayExchanges
  /** The health of each model at each upstream. */
  readonly health: Health
  /** The active health checks of this configuration. They end when a reload replaces the configuration. */
  readonly checks: HealthChecks
  readonly bodyRules: BodyRules
  readonly sharedState: SharedState
  newId(): string
  /** @returns true = the peer may set x-forwarded-* and the request id */
  trusts(address: string): boolean
  /** No new requests are accepted. */
  readonly draining: boolean
}

/** The largest share of a budget whose alert was sent in a period. */
export interface PassedShare {
  readonly share: number
  /** The start of the period, ms since 1970. */
  readonly period: number
}

/** Hands the passed shares, by `idOf`, to the process that replaces this one. */
export interface PassedShares {
  /** The shares that the previous process saved; null = there was no previous process, or it checked no budget. */
  readonly initial: ReadonlyMap<string, PassedShare> | null
  save(passed: ReadonlyMap<string, PassedShare>): void
}

export interface GatewayParts {
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
  /** The number of this worker; absent = there is only one process. */
  readonly worker?: number
  /** false = another worker reports alerts; absent = this process reports them. */
  readonly reportsAlerts?: boolean
  /** The spend of each key at all workers, picodollars; null = not known yet; absent = only this process counts spend. */
  readonly budgetSpend?: () => ReadonlyMap<string, bigint> | null
  /** Absent = no other process replaces this one. */
  readonly passedShares?: PassedShares
  /** The capsule key that all workers use until a store has one; absent = there is only one process. */
  readonly capsuleKey?: CapsuleKey
  /** Changed configuration keys that need a restart. */
  readonly pending?: readonly string[]
  /** Warnings of the first configuration. */
  readonly warnings?: readonly Problem[]
  readonly telemetry?: Telemetry | null
  /** Creates a limiter that all workers share; absent = the limiter counts only in this process. */
  readonly openLimiter?: (defaults: Limits | null) => Limiter
}

export interface Reloads {
  /** Milliseconds since 1970. */
  loadedAt: number
  /** Warnings of the active configuration. */
  warnings: readonly Problem[]
  /** Why the last reload was rejected; null = not rejected. `text`: the file's text; null = unreadable. */
  failure: { readonly at: number; readonly problems: readonly Problem[]; readonly text: string | null } | null
  /** Configuration keys that changed and need a restart. */
  pending: readonly string[]
  /** Number of applied reloads since the start. */
  applied: number
  rejected: number
  readonly log: EventLog<ReloadEvent>
}

export interface CredentialFailure {
  /** `rejected by the upstream (401)`, or why the source of the credential failed. */
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/** The state that a gateway keeps over a reload. */
export interface SharedState extends GatewayParts {
  /** When this process started, ms since 1970. */
  readonly startedAt: number
  readonly circuits: CircuitLog
  /** Running exchanges of every configuration. */
  readonly activeExchanges: ActiveExchanges
  readonly keyStore: KeyStore | null
  /** Keys that seal and open capsules. */
  readonly capsuleKeys: CapsuleKeyStore
  readonly proxy: ProxyServer
  readonly health: Health
  /** The memory for request bodies, for held responses and for responses that settlement reads (`server.body_memory`). */
  readonly bodyMemory: MemoryBudget
  /** Distributes reading time among the responses of upstreams. */
  readonly readTurns: ReadTurns
  /** null = there is no ledger. */
  readonly archive: Archive | null
  /** The rules of the current configuration. They also apply to exchanges that began with an older configuration. */
  bodyRules: BodyRules
  readonly reloads: Reloads
  /** The last failure caused by the operator's credential, by upstream name. */
  readonly credentialFailures: Map<string, CredentialFailure>
  readonly stores: StoreStates
  readonly givenIds: ClientRequestIds
  readonly guessLimit: GuessLimit
  /** The certificate chain of the listener, its own certificate first; empty without TLS. */
  readonly shown: { chain: readonly X509Certificate[] }
  newId(): string
  /** The number of the gateway's own responses that clients have not read yet. */
  unreadResponses: number
  /**
   * `delay`: serve requests until load balancers notice the shutdown. `refuse`: accept no new requests.
   * `hand_over`: another process listens on the address; serve requests only on open connections. null = not shutting down.
   */
  shutdown: null | 'delay' | 'refuse' | 'hand_over'
}
