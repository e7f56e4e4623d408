import { BlockList, isIPv6 } from 'node:net'
import type { KeyChange } from '../auth/key-store.ts'
import { Keyring } from '../auth/keyring.ts'
import { GatewayError } from '../base/errors.ts'
import { MemoryBudget } from '../base/memory-budget.ts'
import { ClientRequestIds, requestIds } from '../base/request-id.ts'
import { compileGlobs } from '../config/glob.ts'
import type { Config } from '../config/types.ts'
import { ANONYMOUS_KEY, newlyBudgeted, openAccounts } from '../context/accounts.ts'
import { ActiveExchanges, GatewayExchanges } from '../context/active-exchanges.ts'
import { bodyRules, openArchive } from '../context/body-rules.ts'
import type { Gateway, GatewayParts, SharedState } from '../context/gateway.ts'
import { HealthChecks } from '../context/health-checks.ts'
import { liveUpstreams } from '../context/upstreams.ts'
import type { LimitedKey } from '../limits/types.ts'
import { createPriceBook } from '../pricing/prices.ts'
import { createProxy } from '../proxy/http-proxy.ts'
import { Health } from '../routing/health.ts'
import { RouteTable } from '../routing/table.ts'
import { openStoredKeys } from './stored-keys.ts'

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
