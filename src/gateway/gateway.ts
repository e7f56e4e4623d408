import type { X509Certificate } from 'node:crypto'
import { BlockList, isIPv6 } from 'node:net'
import type { Logger } from 'pino'
import type { KeyChange, KeyStore } from '../auth/key-store.ts'
import { Keyring } from '../auth/keyring.ts'
import { bodyRules, openArchive } from '../context/body-rules.ts'
import type { BodyRules } from '../context/body-rules.ts'
import { HealthChecks } from '../context/health-checks.ts'
import type { Clock } from '../base/clock.ts'
import { compileGlobs } from '../config/glob.ts'
import type { Problem } from '../config/problem.ts'
import type { Config, Limits } from '../config/types.ts'
import { GatewayError } from '../base/errors.ts'
import { MemoryBudget } from '../base/memory-budget.ts'
import type { LimitedKey, Limiter } from '../limits/types.ts'
import { createPriceBook } from '../pricing/prices.ts'
import { createProxy } from '../proxy/http-proxy.ts'
import type { ProxyServer } from '../proxy/http-proxy.ts'
import { ClientRequestIds, requestIds } from '../base/request-id.ts'
import { Health } from '../routing/health.ts'
import { RouteTable } from '../routing/table.ts'
import { ActiveExchanges, GatewayExchanges } from '../context/active-exchanges.ts'
import { ANONYMOUS_KEY, newlyBudgeted, openAccounts } from '../context/accounts.ts'
import type { Accounts } from '../context/accounts.ts'
import { openStoredKeys } from './stored-keys.ts'
import type { Archive } from '../transcripts/archive.ts'
import { liveUpstreams } from '../context/upstreams.ts'
import type { LiveUpstream } from '../context/upstreams.ts'

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

/**
 * Builds what a configuration asks for. Nothing is in force yet, and nothing
 * that is in force has changed: for that see `enforce`.
 *
 * @param simulatorSocket where the in-process simulator listens; null when no upstream needs it
 * @param before whose lasting parts and connections it takes over; null for the first
 * @throws an error of the system for a file that the configuration names
 */
export function buildGateway(
  config: Config, parts: GatewayParts, simulatorSocket: string | null, before: Gateway | null = null,
): Gateway {
  const lasting = before?.sharedState ?? createSharedState(config, parts)
  const { version, clock, log, keyStore, proxy, newId } = lasting
  const stored = keyStore?.keys()
  const accounts = before
    ? { ...before.accounts, prices: createPriceBook(config) }
    : openAccounts(config, { clock, log, stored, openLimiter: lasting.openLimiter })
  const { trustedProxies } = config.server
  const trusted = trustedProxies.length === 0 ? null : blockList(trustedProxies)
  const upstreams = liveUpstreams(config, simulatorSocket, before?.upstreams.values())
  return {
    config,
    version,
    clock,
    log,
    keyring: new Keyring(config.keys, compileGlobs, {
      keys: stored ?? [], blocked: keyStore?.blocked() ?? [],
    }),
    keyStore,
    routes: new RouteTable(config.routes, compileGlobs),
    proxy,
    accounts,
    upstreams,
    activeExchanges: new GatewayExchanges(lasting.activeExchanges),
    health: lasting.health,
    checks: new HealthChecks(upstreams.values(), lasting),
    bodyRules: bodyRules(config.log.bodies),
    sharedState: lasting,
    newId,
    trusts: trusted === null
      ? () => false
      : address => trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
    get draining() {
      return lasting.draining
    },
  }
}

/**
 * Puts a gateway in force, in one step that cannot fail. Exchanges that began
 * with the one before end with it; then what only that one needed is closed.
 */
export function activate(gateway: Gateway, before: Gateway | null): void {
  const { config, keyring, keyStore, accounts, upstreams, log } = gateway
  const strangers = before === null ? [] : newBudgets(config, before)
  for (const { connections } of upstreams.values()) connections.retain()
  keyStore?.subscribe(change => {
    keyring.update(change)
    accounts.restoreBudgets(change.added, config.limits)
    stopRevokedExchanges(gateway.sharedState.activeExchanges, keyring, change)
  })
  if (before !== null) carryOverHealth(gateway, before)
  gateway.checks.start()
  if (before === null) return
  gateway.sharedState.bodyRules = gateway.bodyRules
  if (config.log.level !== before.config.log.level) log.level = config.log.level
  accounts.limiter.reconfigure(config.limits)
  if (strangers.length > 0) accounts.restoreBudgets(strangers, config.limits)
  before.activeExchanges.whenIdle(() => {
    for (const { connections } of before.upstreams.values()) connections.release()
  })
}

/** Who takes a key away wants it to do nothing more: what it has under way ends, if it is not let in any more. */
function stopRevokedExchanges(running: ActiveExchanges, keyring: Keyring, { removed, blocked }: KeyChange): void {
  const gone = new Set(
    [...removed.map(({ digest }) => digest), ...blocked]
      .filter(digest => keyring.findByDigest(digest) === null)
      .map(digest => digest.toString('latin1')),
  )
  if (gone.size === 0) return
  for (const exchange of running) {
    const at = exchange.identity.key?.digest.toString('latin1')
    if (at === undefined || !gone.has(at)) continue
    exchange.stop(new GatewayError('key_revoked', 'the API key has been revoked'))
  }
}

/** What is known of an upstream stays known where it is asked the same things at the same place. */
function carryOverHealth(gateway: Gateway, before: Gateway): void {
  const heirs = new Set<string>()
  for (const [name, { config, url, connections }] of before.upstreams) {
    const heir = gateway.upstreams.get(name)
    if (JSON.stringify(heir?.config) !== JSON.stringify(config)) gateway.sharedState.credentialRejections.delete(name)
    const isThere = heir?.connections.connectionKey === connections.connectionKey && heir.url.href === url.href
    if (!isThere) gateway.health.forget(name)
    else if (JSON.stringify(heir.config.health) === JSON.stringify(config.health)) heirs.add(name)
  }
  before.checks.stop(heirs)
}

/**
 * Keys with a budget of which the gateway before has counted nothing: the ledger has to tell what was spent.
 */
export function newBudgets(config: Config, before: Gateway): LimitedKey[] {
  const stored = [ANONYMOUS_KEY, ...before.keyStore?.keys() ?? []]
  return newlyBudgeted(
    { keys: [...stored, ...before.config.keys], limits: before.config.limits },
    { keys: [...stored, ...config.keys], limits: config.limits },
  )
}

function createSharedState(config: Config, parts: GatewayParts): SharedState {
  return {
    ...parts,
    activeExchanges: new ActiveExchanges(),
    keyStore: openStoredKeys(config, parts.clock, parts.log),
    proxy: createProxy(),
    health: new Health({ clock: parts.clock, random: Math.random }),
    bodyMemory: new MemoryBudget(),
    archive: openArchive(config, parts.clock, parts.log),
    bodyRules: bodyRules(config.log.bodies),
    reloads: { loadedAt: parts.clock.wall(), failure: null, pending: parts.pending ?? [] },
    credentialRejections: new Map(),
    givenIds: new ClientRequestIds(),
    shown: { chain: [] },
    newId: requestIds(() => parts.clock.wall()),
    unreadResponses: 0,
    draining: false,
    handingOver: false,
  }
}

function blockList(addresses: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of addresses) {
    const [address = '', bits] = entry.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}
