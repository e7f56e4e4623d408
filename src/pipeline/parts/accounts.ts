import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/message-of.ts'
import { compileGlob } from '../../config/glob.ts'
import type { Limits } from '../../config/key-types.ts'
import type { Config } from '../../config/types.ts'
import type { RowValues } from '../../ledger/columns.ts'
import type { Ledger } from '../../ledger/write/ledger.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import { Shipping } from '../../cluster/ledger/shipping.ts'
import { spentByGroup, spentSince, spentWithoutKey } from '../../ledger/sums/spent.ts'
import { openLedger } from '../../ledger/write/threaded-ledger.ts'
import { effectiveLimits } from '../../limits/effective-limits.ts'
import { createLimiter } from '../../limits/limiter.ts'
import type { LimitedKey, Limiter, Spend } from '../../limits/types.ts'
import { createPriceBook, type PriceBook } from '../../pricing/prices.ts'
import { createTokenCounter, type TokenCounter } from '../../pricing/token-counter.ts'
import { CheckpointTimer } from './ledger-checkpoint.ts'
import { clusterLimiter, openClusterLimits } from '../../cluster/limits/cluster-limits.ts'

export interface Accounts {
  readonly prices: PriceBook
  readonly counter: TokenCounter
  readonly limiter: Limiter
  /** null = the configuration has no ledger. */
  readonly ledger: Ledger | null
  /** null = the ledger's rows are not sent to PostgreSQL. */
  readonly shipping: Shipping | null
  readonly checkpointTimer: CheckpointTimer
  /** Restores the budgets of keys that were added at run time. @param defaults the limits of keys that have no limits of their own */
  restoreBudgets(keys: readonly LimitedKey[], defaults: Limits | null): void
  /** Restores the budgets of all callers of these issuers. */
  restoreCallerBudgets(issuers: Config['callers'], defaults: Limits | null): void
  /** Restores the budgets of groups added at run time. @param all every group of the configuration */
  restoreGroupBudgets(groups: readonly LimitedKey[], all: Config['groups']): void
  /** Resolves when the ledger is writable and the cluster's limits are known or unavailable. */
  ready(): Promise<unknown>
  close(): Promise<void>
}

/** The key that stands for requests without a key, so that default limits apply to them. No real key has an empty name. */
export const ANONYMOUS_KEY: LimitedKey = Object.freeze({ name: '', limits: null })

export interface AccountsOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly stored?: readonly LimitedKey[] | undefined
  /** Creates a limiter that all workers share; absent = the limiter counts only in this process. */
  readonly openLimiter?: ((defaults: Limits | null) => Limiter) | undefined
  /** Called with the rows of requests that were interrupted because another process ended. */
  readonly onInterrupted?: (rows: readonly LedgerRow[]) => void
}

/** Opens ledger and limiter, and restores the spend of budgets from the ledger. */
export function openAccounts(config: Config, options: AccountsOptions): Accounts {
  const { clock, log, stored = [], openLimiter, onInterrupted } = options
  // A worker uses the cluster's limits through its supervisor, and does not open them itself.
  const cluster = openLimiter === undefined ? openClusterLimits(config.cluster, log) : null
  const limiter = openLimiter?.(config.limits) ?? (cluster && clusterLimiter(cluster, config.limits))
    ?? createLimiter({ defaults: config.limits, compileGlob, clock })
  let ledger: Ledger | null = null
  const restoreFrom = (spendOf: (history: SpendHistory) => Iterable<Spend>): void => {
    if (!config.ledger) return
    const { file } = config.ledger
    try {
      limiter.restoreSpend(spendOf({ file, unwritten: ledger?.unwritten() ?? [], clock }))
    } catch (error) {
      const why = messageOf(error)
      log.error({ file, why }, 'the ledger cannot be read: budgets count no past spend; make the file readable, then restart')
    }
  }
  const restore = (keys: readonly LimitedKey[], defaults: Limits | null, isFew: boolean): void =>
    restoreFrom(history => pastSpend(history, keys, defaults, isFew))
  const restoreGroups = (groups: readonly LimitedKey[], all: Config['groups']): void =>
    restoreFrom(history => pastGroupSpend(history, groups, all))
  // Of two keys with the same name the last one applies: put the configuration's keys last.
  restore([ANONYMOUS_KEY, ...stored, ...config.keys], config.limits, false)
  const restoreCallers = (issuers: Config['callers'], defaults: Limits | null): void =>
    restoreFrom(history => pastCallerSpend(history, issuers, defaults))
  restoreCallers(config.callers, config.limits)
  restoreGroups([...config.groups.values()], config.groups)
  const shipping = openShipping(config, log)
  if (config.ledger) ledger = openLoggedLedger(config.ledger, shipping !== null, log, onInterrupted)
  const counter = createTokenCounter({ clock })
  const checkpointTimer = new CheckpointTimer(clock)
  return {
    prices: createPriceBook(config),
    counter,
    limiter,
    ledger,
    shipping,
    checkpointTimer,
    ready: () => Promise.all([ledger?.ready(), cluster?.ready()]),
    restoreGroupBudgets: restoreGroups,
    restoreCallerBudgets: restoreCallers,
    restoreBudgets: (keys, defaults) => restore(keys, defaults, keys.length <= MAX_SINGLE_LOOKUPS),
    close: async () => {
      checkpointTimer.close()
      await counter.close()
      await cluster?.close()
      await ledger?.shutdown()
      await shipping?.close()
    },
  }
}

export function reprice(accounts: Accounts, config: Config): Accounts {
  return { ...accounts, prices: createPriceBook(config) }
}

/** If the spend of more keys is needed, read the whole ledger once. */
const MAX_SINGLE_LOOKUPS = 100

interface BudgetConfig<K> {
  readonly keys: readonly K[]
  readonly limits: Limits | null
}

/** Keys with a budget over a new period: its past spend was not counted yet. */
export function newlyBudgeted<K extends Pick<LimitedKey, 'name' | 'limits'>>(before: BudgetConfig<K>, after: BudgetConfig<K>): K[] {
  const known = new Map(before.keys.map(key => [key.name, key]))
  return after.keys.filter(({ name, limits }) => {
    const periods = periodsOf(limits, after.limits)
    if (periods.length === 0) return false
    const key = known.get(name)
    const had = key ? periodsOf(key.limits, before.limits) : []
    return periods.some(period => !had.includes(period))
  })
}

/** @returns period and models of each budget, for example `month ` for all models and `day gpt-*` for some */
function periodsOf(own: Limits | null, defaults: Limits | null): string[] {
  if (own === null && defaults === null) return []
  const { whole, models } = effectiveLimits(own, defaults)
  return [['', whole] as const, ...models].flatMap(([glob, { budget }]) => (budget ? [`${budget.per} ${glob}`] : []))
}

function openShipping({ ledger, cluster }: Config, log: Logger): Shipping | null {
  if (ledger === null || cluster === null || cluster.postgres === null) return null
  const { file, keep } = ledger
  const { postgres: url, instance } = cluster
  return new Shipping({ file, keep, url, instance }, {
    onFailure: (failure, stats) => log.error(
      { ledger: file, failure, stats }, 'ledger rows cannot be sent to PostgreSQL: they wait in the file',
    ),
    onRecovered: stats => log.warn({ ledger: file, stats }, 'ledger rows are sent to PostgreSQL again'),
    onRefused: requests => log.error({ ledger: file, requests }, 'PostgreSQL refuses these ledger rows: they stay in the file'),
  })
}

function openLoggedLedger(
  config: NonNullable<Config['ledger']>, isShipped: boolean, log: Logger, onInterrupted: AccountsOptions['onInterrupted'],
): Ledger {
  return openLedger({
    ...config,
    isShipped,
    ...onInterrupted && { onInterrupted },
    onFailure: (trouble, stats) => log.error({ ledger: config.file, trouble, stats }, 'the ledger cannot be written'),
    onRecovered: stats => log.warn({ ledger: config.file, stats }, 'the ledger can be written again'),
  })
}

/** Where past spend is read: the ledger's file, and `unwritten` rows that are not in the file yet. */
interface SpendHistory {
  readonly file: string
  readonly unwritten: readonly RowValues[]
  readonly clock: Clock
}

/** @param isFew read only the rows of these keys; false = read all rows, which is faster for many keys */
function* pastSpend(
  { file, unwritten, clock }: SpendHistory, keys: readonly LimitedKey[], defaults: Limits | null, isFew: boolean,
): Generator<Spend> {
  const budgeted = new Map(keys.filter(key => hasBudget(key.limits, defaults)).map(key => [ledgerKeyName(key), key]))
  if (budgeted.size === 0) return
  const since = earliestPeriodStart([defaults, ...[...budgeted.values()].map(key => key.limits)], clock)
  const names = [...budgeted.keys()].filter(name => name !== null)
  const sums = [
    ...names.length > 0 ? spentSince(file, since, unwritten, isFew ? names : null) : [],
    ...budgeted.has(null) ? spentWithoutKey(file, since, unwritten) : [],
  ]
  for (const { key, model, startedAt, pico } of sums) {
    const holder = budgeted.get(key)
    if (holder) yield { key: holder, model, startedAt, pico }
  }
}

/** Callers are known only from their rows. */
function* pastCallerSpend({ file, unwritten, clock }: SpendHistory, issuers: Config['callers'], defaults: Limits | null): Generator<Spend> {
  const budgeted = issuers.filter(({ limits }) => hasBudget(limits, defaults))
  if (budgeted.length === 0) return
  const since = earliestPeriodStart([defaults, ...budgeted.map(({ limits }) => limits)], clock)
  for (const { key: name, model, startedAt, pico } of spentSince(file, since, unwritten)) {
    const issuer = budgeted.find(each => name?.startsWith(`${each.name}:`))
    if (name !== null && issuer !== undefined) yield { key: { name, limits: issuer.limits }, model, startedAt, pico }
  }
}

/** The spend of the groups' own keys, and of the groups below. */
function* pastGroupSpend({ file, unwritten, clock }: SpendHistory, groups: readonly LimitedKey[], all: Config['groups']): Generator<Spend> {
  const budgeted = new Map(groups.filter(({ limits }) => hasBudget(limits)).map(group => [group.name, group]))
  if (budgeted.size === 0) return
  const since = earliestPeriodStart([...budgeted.values()].map(({ limits }) => limits), clock)
  for (const { group, startedAt, pico } of spentByGroup(file, since, unwritten)) {
    for (const { name } of all.get(group)?.chain ?? []) {
      const key = budgeted.get(name)
      if (key) yield { key, model: null, startedAt, pico }
    }
  }
}

function ledgerKeyName(key: LimitedKey): string | null {
  return key === ANONYMOUS_KEY ? null : key.name
}

function budgetsOf(limits: Limits | null): string[] {
  if (!limits) return []
  return [limits, ...limits.models.values()].flatMap(({ budget }) => budget?.per ?? [])
}

/** @returns true = at least one of the limits has a budget, for all or for some models */
export function hasBudget(...limits: (Limits | null)[]): boolean {
  return limits.some(each => budgetsOf(each).length > 0)
}

/** The start of the longest budget period in the limits, ms since 1970. */
function earliestPeriodStart(limits: readonly (Limits | null)[], clock: Clock): number {
  const periods = new Set(limits.flatMap(budgetsOf))
  if (periods.has('total')) return 0
  const now = new Date(clock.wall())
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), periods.has('month') ? 1 : now.getUTCDate())
}
