import type { Logger } from 'pino'
import type { Clock } from './clock.ts'
import { compileGlob } from './config/glob.ts'
import type { Config, Key, Limits } from './config/types.ts'
import { openLedger } from './ledger/ledger.ts'
import type { Ledger } from './ledger/ledger.ts'
import { spentSince } from './ledger/spent.ts'
import { createLimiter } from './limits/limiter.ts'
import type { LocalLimiter } from './limits/limiter.ts'
import type { Spend } from './limits/types.ts'
import { createTokenCounter } from './metering/estimate.ts'
import type { TokenCounter } from './metering/estimate.ts'
import { createPriceBook } from './metering/prices.ts'
import type { PriceBook } from './metering/prices.ts'

/** Where the gateway keeps account: what things cost, who may still spend, what was spent. */
export interface Accounts {
  readonly prices: PriceBook
  readonly counter: TokenCounter
  readonly limiter: LocalLimiter
  /** null when the configuration names no ledger. */
  readonly ledger: Ledger | null
  /** Writes what waits, then closes. */
  close(): Promise<void>
}

/** The key of those who need none, for the limits that hold for all. */
export const ANONYMOUS_KEY: Pick<Key, 'name' | 'limits'> = Object.freeze({ name: 'anonymous', limits: null })

/** Opens the accounts, and tells the budgets what was spent before. */
export function openAccounts(config: Config, clock: Clock, log: Logger): Accounts {
  const limiter = createLimiter({ defaults: config.limits, compileGlob, clock })
  if (config.ledger) {
    try {
      limiter.restoreSpend(spentBefore(config, config.ledger.file, clock))
    } catch (error) {
      log.error({ err: error, file: config.ledger.file }, 'the ledger cannot be read: budgets start from nothing spent')
    }
  }
  const ledger = config.ledger ? watchedLedger(config.ledger, log) : null
  const counter = createTokenCounter({ clock })
  return {
    prices: createPriceBook(config),
    counter,
    limiter,
    ledger,
    close: async () => {
      await counter.close()
      await ledger?.shutdown()
    },
  }
}

function watchedLedger(config: NonNullable<Config['ledger']>, log: Logger): Ledger {
  return openLedger({
    ...config,
    onTrouble: (trouble, stats) => log.error({ ledger: config.file, trouble, stats }, 'the ledger is in trouble'),
    onRecovered: stats => log.warn({ ledger: config.file, stats }, 'the ledger is written again'),
  })
}

/** Sums of the ledger that some budget still counts. */
function* spentBefore(config: Config, file: string, clock: Clock): Generator<Spend> {
  const budgeted = new Map(config.keys.filter(key => hasBudget(key.limits, config.limits)).map(key => [key.name, key]))
  if (budgeted.size === 0) return
  for (const { key, model, startedAt, pico } of spentSince(file, firstDay(config, clock))) {
    const holder = budgeted.get(key)
    if (holder) yield { key: holder, model, startedAt, pico }
  }
}

function budgetsOf(limits: Limits | null): string[] {
  if (!limits) return []
  return [limits, ...limits.models.values()].flatMap(({ budget }) => budget?.per ?? [])
}

function hasBudget(...limits: (Limits | null)[]): boolean {
  return limits.some(each => budgetsOf(each).length > 0)
}

/** Milliseconds since 1970: where the longest period of any budget began. */
function firstDay(config: Config, clock: Clock): number {
  const periods = new Set([config.limits, ...config.keys.map(key => key.limits)].flatMap(budgetsOf))
  if (periods.has('total')) return 0
  const now = new Date(clock.wall())
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), periods.has('month') ? 1 : now.getUTCDate())
}
