import type { X509Certificate } from 'node:crypto'
import type { Logger } from 'pino'
import type { KeyStore } from '../auth/key-store.ts'
import type { Keyring } from '../auth/keyring.ts'
import type { Clock } from '../base/clock.ts'
import type { MemoryBudget } from '../base/memory-budget.ts'
import type { ClientRequestIds } from '../base/request-id.ts'
import type { Problem } from '../config/problem.ts'
import type { Config, Limits } from '../config/types.ts'
import type { Limiter } from '../limits/types.ts'
import type { ProxyServer } from '../proxy/http-proxy.ts'
import type { Health } from '../routing/health.ts'
import type { RouteTable } from '../routing/table.ts'
import type { Archive } from '../transcripts/archive.ts'
import type { Accounts } from './accounts.ts'
import type { ActiveExchanges, GatewayExchanges } from './active-exchanges.ts'
import type { BodyRules } from './body-rules.ts'
import type { HealthChecks } from './health-checks.ts'
import type { LiveUpstream } from './upstreams.ts'

export type { LiveUpstream }

/**
 * Everything that the pipeline works with, built once from a configuration. An
 * exchange keeps the gateway with which it began.
 */
export interface Gateway {
  readonly config: Config
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
  readonly keyring: Keyring
  /** Keys that are made at run time; null when the configuration names no ledger. */
  readonly keyStore: KeyStore | null
  readonly routes: RouteTable
  readonly proxy: ProxyServer
  readonly accounts: Accounts
  readonly upstreams: ReadonlyMap<string, LiveUpstream>
  /** Exchanges under way that began with it, WebSockets included. */
  readonly activeExchanges: GatewayExchanges
  /** How well each model at each upstream does. */
  readonly health: Health
  /** Asks upstreams whether they are well, while the gateway is in force. */
  readonly checks: HealthChecks
  readonly bodyRules: BodyRules
  readonly sharedState: SharedState
  /** The id of a request that brings none. */
  newId(): string
  /** May this peer set x-forwarded-* and the request id? */
  trusts(address: string): boolean
  /** It takes no new exchanges. */
  readonly draining: boolean
}

export interface GatewayParts {
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
  /** The number of this process among several; absent where there is one. */
  readonly worker?: number
  /** Keys of the file that wait for the next start already; none unless told. */
  readonly pending?: readonly string[]
  /** Makes a limiter whose limits are kept elsewhere; without it they are kept here. */
  readonly openLimiter?: (defaults: Limits | null) => Limiter
}

/**
 * What the configuration that is in force stands for, and what is to
 * be said of the last attempt to change it.
 */
export interface Reloads {
  /** Milliseconds since 1970. */
  loadedAt: number
  /** Why the last attempt failed; null = it did not. */
  failure: { readonly at: number; readonly problems: readonly Problem[] } | null
  /**
   * Keys of the configuration that differ from what the process was
   * started with, and wait for the next start.
   */
  pending: readonly string[]
}

/** An upstream refused the operator's credential. */
export interface CredentialRejection {
  readonly status: number
  /** Milliseconds since 1970. */
  readonly at: number
}

/** What outlives a change of the configuration. */
export interface SharedState extends GatewayParts {
  /** Exchanges under way, with whatever configuration they began. */
  readonly activeExchanges: ActiveExchanges
  readonly keyStore: KeyStore | null
  readonly proxy: ProxyServer
  readonly health: Health
  /** Bodies in memory: of requests, and of answers that are kept back or kept to be read. */
  readonly bodyMemory: MemoryBudget
  /** What `log.bodies` has kept; null without a ledger. */
  readonly archive: Archive | null
  /** Those of the configuration that is in force, whichever an exchange began with. */
  bodyRules: BodyRules
  readonly reloads: Reloads
  /** By the name of the upstream: when it last refused the gateway's own credential. */
  readonly credentialRejections: Map<string, CredentialRejection>
  readonly givenIds: ClientRequestIds
  /** The certificates that clients are shown, the listener's first; none where TLS is not spoken. */
  readonly shown: { chain: readonly X509Certificate[] }
  newId(): string
  /** Answers of the gateway's own that are on their way to a client. */
  unreadResponses: number
  /** No new exchanges are taken. */
  draining: boolean
  /**
   * Another process has the address: what comes on open connections is
   * served to the end, and nothing else comes.
   */
  handingOver: boolean
}
