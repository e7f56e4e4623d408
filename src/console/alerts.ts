import { placeOf } from '../config/problem.ts'
import { validityRemark } from '../config/validity.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { plan } from '../limits/effective-limits.ts'
import type { Concern } from './api/panel.ts'
import { modelRow } from './model-rows.ts'
import type { BudgetAsked, Reports } from './reports/reports.ts'
import { isoTimeOrNull, named } from './texts.ts'
import type { Doing } from './workers.ts'

/** Share of a budget from which on somebody should know. */
const NEAR = 0.9
/** Clients make models up, and each is looked up in the routes. */
const MOST_UNPRICED = 100
/** ms for which an upstream that refused the operator's credential is told of. */
const REJECTED = 15 * 60_000

/** What only this process has to say: nothing of it takes a question to the ledger. */
export function ownConcerns(gateway: Gateway, all: readonly Doing[], now: number): Concern[] {
  return [
    ...keys(gateway), ...configuration(gateway), ...certificate(gateway, now), ...ledger(gateway),
    ...upstreams(all, now),
  ]
}

function keys({ config, keyStore, lasting }: Gateway): Concern[] {
  const concerns: Concern[] = []
  if (config.auth === 'keys' && config.keys.length === 0 && (keyStore?.keys().length ?? 0) === 0) {
    concerns.push(
      concern('no_keys', 'error', 'There is no key, so that nobody gets in: make one on the page Keys'),
    )
  }
  const trouble = keyStore?.trouble ?? null
  if (trouble !== null) {
    const message = `Stored keys cannot be read: ${trouble}. Those known so far stay in force`
    concerns.push(concern('key_store', 'error', message))
  }
  const { loadedAt, failure, pending } = lasting.reloads
  if (failure !== null) return concerns
  if (pending.length > 0) {
    const what =
      `${pending.join(', ')} ${pending.length === 1 ? 'has' : 'have'} changed: that takes a restart`
    concerns.push(concern('restart_needed', 'warning', what, null, loadedAt))
  }
  return concerns
}

function configuration({ lasting: { reloads: { failure } } }: Gateway): Concern[] {
  const worst = failure?.problems.find(({ severity }) => severity === 'error')
  if (!failure || !worst) return []
  const more = failure.problems.length === 1 ? '' : ` (and ${failure.problems.length - 1} more)`
  const why = `${placeOf(worst)}: ${worst.message}${more}`
  const message = `The configuration was not taken, the one before is in force: ${why}`
  return [concern('reload_failed', 'error', message, null, failure.at)]
}

function certificate({ lasting: { shown: { chain } } }: Gateway, now: number): Concern[] {
  return chain.flatMap((each, index) => {
    const remark = validityRemark(each, index, now)
    if (remark === null) return []
    const severity = each.validToDate.getTime() < now ? 'error' : 'warning'
    return [concern('certificate', severity, `server.tls.cert: ${remark}; renew it, and read it by SIGHUP`)]
  })
}

function ledger({ accounts: { ledger } }: Gateway): Concern[] {
  if (ledger === null) {
    return [concern(
      'ledger', 'warning', 'There is no ledger, so that nothing is known of the past: set ledger.file',
    )]
  }
  if (ledger.stats().healthy) return []
  return [concern(
    'ledger', 'error', 'The ledger cannot be written: look at its disk, and at the log for the reason',
  )]
}

function upstreams(all: readonly Doing[], now: number): Concern[] {
  const concerns = new Map<string, Concern>()
  for (const [name, { status, at }] of all.flatMap(({ rejections }) => rejections)) {
    if (at < now - REJECTED) continue
    const what = `The upstream ${name} answered ${status} to the gateway's own credential`
    const message = `${what}: check upstreams.${name}.auth`
    concerns.set(`rejected ${name}`, concern('upstream_key_rejected', 'error', message, name, at))
  }
  for (const { upstream, model, circuit } of all.flatMap(({ candidates }) => candidates)) {
    if (circuit === 'closed') continue
    const what = model === null ? upstream : `${named(model)} at ${upstream}`
    const message = `${what} fails, and is left alone for now`
    concerns.set(`open ${what}`, concern('circuit_open', 'warning', message, upstream))
  }
  return [...concerns.values()]
}

/**
 * Models that were used in the last 24 hours without a price. One that has a price by now is told as such:
 * what was used before stays without a cost.
 *
 * @param now ms since 1970
 */
export async function unpriced(gateway: Gateway, reports: Reports, now: number): Promise<Concern[]> {
  const models = await reports.unpricedModels(MOST_UNPRICED)
  return models.map(({ name, requests: count }) => {
    const requests = count === 1 ? 'one request' : `${count} requests`
    const message = modelRow(gateway, name, false, new Date(now)).price === null
      ? `Nobody knows what ${named(name)} costs (${requests} of late): give it a price under models`
      : `Nobody knows what ${requests} for ${named(name)} cost of late: ` +
        'it had no price then, or has none for what was used'
    return concern('unpriced_model', 'warning', message, name)
  })
}

/** Budgets that are near their end, or beyond it. */
export async function spentBudgets(gateway: Gateway, reports: Reports): Promise<Concern[]> {
  const near = await reports.nearBudgets(budgetsOf(gateway, null), NEAR)
  return near.map(({ key, model, per, limit_usd: limit, used }) => {
    const models = model === null ? '' : ` for ${named(model)}`
    const which = `The budget of ${named(key)}${models}, ${limit} USD ${perText(per)},`
    const message = `${which} is ${used >= 1 ? 'spent' : `used to ${Math.floor(used * 100)} %`}`
    return concern('budget', used >= 1 ? 'error' : 'warning', message, key)
  })
}

function perText(per: BudgetAsked['per']): string {
  return per === 'total' ? 'in total' : `a ${per}`
}

/** Every budget that is in force, of one key or of all. */
export function budgetsOf({ config, keyStore }: Gateway, own: string | null): BudgetAsked[] {
  const keys = new Map([...keyStore?.keys() ?? [], ...config.keys].map(key => [key.name, key]))
  return [...keys.values()]
    .filter(({ name }) => own === null || name === own)
    .flatMap(({ name, limits }) => {
      if (limits === null && config.limits === null) return []
      const { whole, models } = plan(limits, config.limits)
      return [[null, whole] as const, ...models].flatMap(([model, { budget }]) =>
        (budget ? [{ key: name, model, per: budget.per, limit_usd: budget.usd }] : []))
    })
}

function concern(
  kind: Concern['kind'], severity: Concern['severity'], message: string, subject: string | null = null,
  since: number | null = null,
): Concern {
  return { kind, severity, message, subject, since: isoTimeOrNull(since) }
}

/** The worst first, and of those the newest. */
export function inOrder(concerns: readonly Concern[]): Concern[] {
  const weight = ({ severity }: Concern) => (severity === 'error' ? 0 : 1)
  return [...concerns].sort((a, b) => weight(a) - weight(b) || (b.since ?? '').localeCompare(a.since ?? ''))
}

