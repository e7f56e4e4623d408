import { BlockList, isIPv6 } from 'node:net'
import { Attribution, claimsIn } from '../attribution/attribution.ts'
import { actingKeyOf } from '../auth/callers/caller-keys.ts'
import { callerDigest } from '../auth/callers/caller-of.ts'
import { Callers } from '../auth/callers/callers.ts'
import type { KeyChange } from '../auth/key-store.ts'
import { Keyring, digestsOf } from '../auth/keyring.ts'
import { GatewayError } from '../base/errors.ts'
import { EventLog } from '../base/event-log.ts'
import { MemoryBudget } from '../base/memory-budget.ts'
import { ClientRequestIds, requestIds } from '../base/request-id.ts'
import { compileGlobs } from '../config/glob.ts'
import type { CallerIssuer } from '../config/caller-types.ts'
import type { Config } from '../config/types.ts'
import { ANONYMOUS_KEY, newlyBudgeted, openAccounts, reprice } from '../pipeline/parts/accounts.ts'
import { ActiveExchanges, GatewayExchanges } from '../pipeline/exchange/active-exchanges.ts'
import { bodyRules, openArchive } from '../pipeline/parts/body-rules.ts'
import type { Gateway, GatewayParts, SharedState } from '../pipeline/parts/gateway.ts'
import { HealthChecks } from '../upstreams/health-checks.ts'
import { LiveTargets } from '../upstreams/live-targets.ts'
import { liveUpstreams } from '../upstreams/live-upstreams.ts'
import { StoreStates } from '../cluster/store-states.ts'
import { GuessLimit } from '../limits/guess-limit.ts'
import type { LimitedKey } from '../limits/types.ts'
import { interruptedSettlement } from '../telemetry/settlement.ts'
import { CheckSet } from '../policy/checks/check-set.ts'
import { createEditSet } from '../policy/edits/edit-set.ts'
import { HookSet } from '../policy/hooks/hook-set.ts'
import type { HookParts } from '../policy/hooks/hook.ts'
import { routeFetch } from '../proxy/upstream/fetch-route.ts'
import { createProxy } from '../proxy/upstream/http-proxy.ts'
import { ReadTurns } from '../proxy/http/read-turns.ts'
import { CircuitLog } from '../routing/circuit-log.ts'
import { Health } from '../routing/health.ts'
import { RouteTable } from '../routing/route-table.ts'
import { openCapsuleKeys } from './capsule-keys.ts'
import { openStoredKeys } from './stored-keys.ts'

/**
 * Builds the gateway of a configuration. The gateway serves nothing until `activate` is called.
 * @param simulatorSocket socket of the in-process simulator; null = no upstream needs the simulator
 * @param before the gateway whose shared state and connections the new gateway takes over
 * @throws a system error if a file that the configuration names cannot be read
 */
export function buildGateway(config: Config, parts: GatewayParts, simulatorSocket: string | null, before: Gateway | null = null): Gateway {
  const sharedState = before?.sharedState ?? createSharedState(config, parts)
  const { version, clock, log, keyStore, proxy, newId } = sharedState
  const stored = keyStore?.keys()
  const accounts = before
    ? reprice(before.accounts, config)
    : openAccounts(config, {
        clock, log, stored, openLimiter: sharedState.openLimiter,
        onInterrupted: rows => rows.forEach(row => sharedState.telemetry?.settled(interruptedSettlement(row))),
      })
  const { trustedProxies } = config.server
  const trusted = trustedProxies.length === 0 ? null : blockList(trustedProxies)
  const upstreams = liveUpstreams(config, sharedState, simulatorSocket, before?.upstreams.values())
  const allStored = { keys: [...stored ?? [], ...keyStore?.callerKeys() ?? []], blocked: keyStore?.blocked() ?? [] }
  const keyring = new Keyring(config.keys, compileGlobs, allStored, config.groups, key => actingKeyOf(key, config.callers))
  return {
    config, version, clock, log, keyring,
    callers: openCallers(config, keyring, sharedState, before?.callers ?? null),
    keyStore,
    attribution: config.attribution && new Attribution(config.attribution, before?.attribution?.values),
    textChecks: config.checks.size === 0 ? null : new CheckSet(config.checks),
    hooks: openHooks(config, sharedState, before?.hooks ?? null),
    edits: createEditSet(config),
    routes: new RouteTable(config.routes, compileGlobs),
    proxy, accounts, upstreams,
    targets: new LiveTargets(upstreams),
    activeExchanges: new GatewayExchanges(sharedState.activeExchanges),
    health: sharedState.health,
    checks: new HealthChecks(upstreams.values(), sharedState),
    bodyRules: bodyRules(config.log.bodies),
    sharedState, newId,
    trusts: trusted === null
      ? () => false
      : address => trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
    get draining() { return sharedState.shutdown === 'refuse' },
  }
}

/**
 * Activates a gateway in one step that cannot fail. Running exchanges of the previous gateway end there. When they have ended, the
 * connections that only the previous gateway used are closed.
 */
export function activate(gateway: Gateway, before: Gateway | null): void {
  const { config, keyring, keyStore, accounts, upstreams, log } = gateway
  routeFetch(config.proxy)
  gateway.hooks?.retain(before?.hooks ?? null)
  const unknownBudgets = before === null ? [] : newBudgets(config, before)
  const unknownCallers = before === null ? [] : newCallerBudgets(config, before.config)
  for (const { connections, credential } of upstreams.values()) {
    connections.retain()
    credential?.retain()
  }
  keyStore?.subscribe(change => {
    keyring.update(change)
    accounts.restoreBudgets(change.added, config.limits)
    stopRevokedExchanges(gateway.sharedState.activeExchanges, keyring, change)
  })
  if (before !== null) carryOverHealth(gateway, before)
  gateway.checks.start()
  before?.callers?.stop(gateway.callers)
  gateway.callers?.start()
  gateway.sharedState.telemetry?.configure(config.routes, config.callers.map(({ name }) => name))
  if (before === null) return
  gateway.sharedState.bodyRules = gateway.bodyRules
  if (config.log.level !== before.config.log.level) log.level = config.log.level
  accounts.limiter.reconfigure(config.limits)
  if (unknownBudgets.length > 0) accounts.restoreBudgets(unknownBudgets, config.limits)
  if (unknownCallers.length > 0) accounts.restoreCallerBudgets(unknownCallers, config.limits)
  const groups = newGroupBudgets(config, before.config)
  if (groups.length > 0) accounts.restoreGroupBudgets(groups, config.groups)
  before.activeExchanges.whenIdle(() => {
    before.hooks?.release()
    for (const { connections, credential } of before.upstreams.values()) {
      connections.release()
      credential?.release()
    }
  })
}

function openHooks({ hooks }: Config, { clock, log, circuits, telemetry }: SharedState, before: HookSet | null): HookSet | null {
  if (hooks.size === 0) return null
  const observe: HookParts['observe'] = (...call) => telemetry?.hookCalled(...call)
  return new HookSet(hooks, { clock, log, circuits, observe }, before)
}

function openCallers({ callers, groups, attribution }: Config, keyring: Keyring, { clock, log }: SharedState, before: Callers | null): Callers | null {
  if (callers.length === 0) return null
  return new Callers(callers, {
    clock, groups, compile: compileGlobs, claims: attribution === null ? [] : claimsIn(attribution),
    isBlocked: digest => keyring.isBlocked(digest),
    onFailure: (issuer, why) => log.error({ issuer, why }, `the keys of the issuer ${issuer} cannot be read: keys that were read before stay in use`),
    onRecovered: issuer => log.warn({ issuer }, `the keys of the issuer ${issuer} can be read again`),
  }, before)
}

/** Stops running exchanges of revoked keys, unless another entry still admits the key. */
function stopRevokedExchanges(exchanges: ActiveExchanges, keyring: Keyring, { removed, blocked }: KeyChange): void {
  const revoked = new Set(
    [...removed.flatMap(digestsOf), ...blocked]
      .filter(digest => keyring.findByDigest(digest) === null)
      .map(digest => digest.toString('latin1')),
  )
  if (revoked.size === 0) return
  for (const exchange of exchanges) {
    const digest = exchange.identity.key?.digest.toString('latin1')
    const maker = exchange.identity.key?.caller
    const isMakerRevoked = maker !== undefined && revoked.has(callerDigest(maker).toString('latin1'))
    if (digest === undefined || (!revoked.has(digest) && !isMakerRevoked)) continue
    exchange.stop(new GatewayError('key_revoked', 'the API key has been revoked'))
  }
}

/** Takes over the health results of upstreams whose address and health check did not change. */
function carryOverHealth(gateway: Gateway, before: Gateway): void {
  const unchanged = new Set<string>()
  for (const [name, { config, url, connections }] of before.upstreams) {
    const successor = gateway.upstreams.get(name)
    if (JSON.stringify(successor?.config) !== JSON.stringify(config)) gateway.sharedState.credentialFailures.delete(name)
    const isSameAddress = successor?.connections.connectionKey === connections.connectionKey && successor.url.href === url.href
    if (!isSameAddress) gateway.health.forget(name)
    else if (JSON.stringify(successor.config.health) === JSON.stringify(config.health)) unchanged.add(name)
  }
  before.checks.stop(unchanged)
}

/** Keys whose budget the previous gateway did not count. Their past spend is read from the ledger. */
export function newBudgets(config: Config, before: Gateway): LimitedKey[] {
  const stored = [ANONYMOUS_KEY, ...before.keyStore?.keys() ?? []]
  return newlyBudgeted(
    { keys: [...stored, ...before.config.keys], limits: before.config.limits },
    { keys: [...stored, ...config.keys], limits: config.limits },
  )
}

/** Issuers whose callers have a budget that the previous configuration did not count. */
export function newCallerBudgets(config: Config, before: Config): CallerIssuer[] {
  return newlyBudgeted({ keys: before.callers, limits: before.limits }, { keys: config.callers, limits: config.limits })
}

function newGroupBudgets(config: Config, before: Config): LimitedKey[] {
  const groupsOf = ({ groups }: Config) => ({ keys: [...groups.values()] as LimitedKey[], limits: null })
  return newlyBudgeted(groupsOf(before), groupsOf(config))
}

function createSharedState(config: Config, parts: GatewayParts): SharedState {
  const circuits = new CircuitLog()
  return {
    ...parts,
    startedAt: parts.clock.wall(),
    circuits,
    activeExchanges: new ActiveExchanges(),
    keyStore: openStoredKeys(config, parts.clock, parts.log),
    capsuleKeys: openCapsuleKeys(config, parts),
    proxy: createProxy(),
    health: new Health({ clock: parts.clock, random: Math.random, circuits }),
    bodyMemory: new MemoryBudget(),
    readTurns: new ReadTurns(),
    archive: openArchive(config, parts.clock, parts.log),
    bodyRules: bodyRules(config.log.bodies),
    reloads: {
      loadedAt: parts.clock.wall(), warnings: parts.warnings ?? [], failure: null, pending: parts.pending ?? [], applied: 0, rejected: 0,
      log: new EventLog(0),
    },
    credentialFailures: new Map(),
    stores: new StoreStates(parts.clock),
    givenIds: new ClientRequestIds(),
    guessLimit: new GuessLimit({
      clock: parts.clock,
      onLimited: address => parts.log.warn({ address }, `${address} sends too many wrong keys: it gets 429`),
    }),
    shown: { chain: [] },
    newId: requestIds(() => parts.clock.wall()),
    unreadResponses: 0,
    shutdown: null,
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
