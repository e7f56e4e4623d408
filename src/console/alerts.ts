import { placeOf } from '../config/problem.ts'
import { validityWarning } from '../config/validity.ts'
import type { Gateway } from '../context/gateway.ts'
import { effectiveLimits } from '../limits/effective-limits.ts'
import type { Alert } from './api/panel.ts'
import { modelRow } from './model-rows.ts'
import type { ConfiguredBudget, Reports } from './reports/reports.ts'
import { isoTimeOrNull, isolatedName } from './texts.ts'
import type { WorkerActivity } from './workers.ts'

/** Share of a budget from which on somebody should know. */
const BUDGET_ALERT_SHARE = 0.9
/** Clients make models up, and each is looked up in the routes. */
const MAX_UNPRICED_MODELS = 100
/** ms for which an upstream that refused the operator's credential is told of. */
const REJECTION_ALERT_MS = 15 * 60_000

/** What only this process has to say: nothing of it takes a question to the ledger. */
export function gatewayAlerts(gateway: Gateway, all: readonly WorkerActivity[], now: number): Alert[] {
  return [
    ...keyAlerts(gateway), ...configurationAlerts(gateway), ...certificateAlerts(gateway, now), ...ledgerAlerts(gateway),
    ...upstreamAlerts(all, now),
  ]
}

function keyAlerts({ config, keyStore, sharedState: lasting }: Gateway): Alert[] {
  const concerns: Alert[] = []
  if (config.auth === 'keys' && config.keys.length === 0 && (keyStore?.keys().length ?? 0) === 0) {
    concerns.push(
      createAlert('no_keys', 'error', 'There is no key, so that nobody gets in: make one on the page Keys'),
    )
  }
  const trouble = keyStore?.failure ?? null
  if (trouble !== null) {
    const message = `Stored keys cannot be read: ${trouble}. Those known so far stay in force`
    concerns.push(createAlert('key_store', 'error', message))
  }
  const { loadedAt, failure, pending } = lasting.reloads
  if (failure !== null) return concerns
  if (pending.length > 0) {
    const what =
      `${pending.join(', ')} ${pending.length === 1 ? 'has' : 'have'} changed: that takes a restart`
    concerns.push(createAlert('restart_needed', 'warning', what, null, loadedAt))
  }
  return concerns
}

function configurationAlerts({ sharedState: { reloads: { failure } } }: Gateway): Alert[] {
  const worst = failure?.problems.find(({ severity }) => severity === 'error')
  if (!failure || !worst) return []
  const more = failure.problems.length === 1 ? '' : ` (and ${failure.problems.length - 1} more)`
  const why = `${placeOf(worst)}: ${worst.message}${more}`
  const message = `The configuration was not taken, the one before is in force: ${why}`
  return [createAlert('reload_failed', 'error', message, null, failure.at)]
}

function certificateAlerts({ sharedState: { shown: { chain } } }: Gateway, now: number): Alert[] {
  return chain.flatMap((each, index) => {
    const remark = validityWarning(each, index, now)
    if (remark === null) return []
    const severity = each.validToDate.getTime() < now ? 'error' : 'warning'
    return [createAlert('certificate', severity, `server.tls.cert: ${remark}; renew it, and read it by SIGHUP`)]
  })
}

function ledgerAlerts({ accounts: { ledger } }: Gateway): Alert[] {
  if (ledger === null) {
    return [createAlert(
      'ledger', 'warning', 'There is no ledger, so that nothing is known of the past: set ledger.file',
    )]
  }
  if (ledger.stats().healthy) return []
  return [createAlert(
    'ledger', 'error', 'The ledger cannot be written: look at its disk, and at the log for the reason',
  )]
}

function upstreamAlerts(all: readonly WorkerActivity[], now: number): Alert[] {
  const concerns = new Map<string, Alert>()
  for (const [name, { status, at }] of all.flatMap(({ rejections }) => rejections)) {
    if (at < now - REJECTION_ALERT_MS) continue
    const what = `The upstream ${name} answered ${status} to the gateway's own credential`
    const message = `${what}: check upstreams.${name}.auth`
    concerns.set(`rejected ${name}`, createAlert('upstream_key_rejected', 'error', message, name, at))
  }
  for (const { upstream, model, circuit } of all.flatMap(({ candidates }) => candidates)) {
    if (circuit === 'closed') continue
    const what = model === null ? upstream : `${isolatedName(model)} at ${upstream}`
    const message = `${what} fails, and is left alone for now`
    concerns.set(`open ${what}`, createAlert('circuit_open', 'warning', message, upstream))
  }
  return [...concerns.values()]
}

/**
 * Models that were used in the last 24 hours without a price. One that has a price by now is told as such:
 * what was used before stays without a cost.
 *
 * @param now ms since 1970
 */
export async function unpricedAlerts(gateway: Gateway, reports: Reports, now: number): Promise<Alert[]> {
  const models = await reports.unpricedModels(MAX_UNPRICED_MODELS)
  return models.map(({ name, requests: count }) => {
    const requests = count === 1 ? 'one request' : `${count} requests`
    const message = modelRow(gateway, name, false, new Date(now)).price === null
      ? `Nobody knows what ${isolatedName(name)} costs (${requests} of late): give it a price under models`
      : `Nobody knows what ${requests} for ${isolatedName(name)} cost of late: ` +
        'it had no price then, or has none for what was used'
    return createAlert('unpriced_model', 'warning', message, name)
  })
}

/** Budgets that are near their end, or beyond it. */
export async function budgetAlerts(gateway: Gateway, reports: Reports): Promise<Alert[]> {
  const near = await reports.nearBudgets(budgetsOf(gateway, null), BUDGET_ALERT_SHARE)
  return near.map(({ key, model, per, limit_usd: limit, used }) => {
    const models = model === null ? '' : ` for ${isolatedName(model)}`
    const which = `The budget of ${isolatedName(key)}${models}, ${limit} USD ${perText(per)},`
    const message = `${which} is ${used >= 1 ? 'spent' : `used to ${Math.floor(used * 100)} %`}`
    return createAlert('budget', used >= 1 ? 'error' : 'warning', message, key)
  })
}

function perText(per: ConfiguredBudget['per']): string {
  return per === 'total' ? 'in total' : `a ${per}`
}

/** Every budget that is in force, of one key or of all. */
export function budgetsOf({ config, keyStore }: Gateway, own: string | null): ConfiguredBudget[] {
  const keys = new Map([...keyStore?.keys() ?? [], ...config.keys].map(key => [key.name, key]))
  return [...keys.values()]
    .filter(({ name }) => own === null || name === own)
    .flatMap(({ name, limits }) => {
      if (limits === null && config.limits === null) return []
      const { whole, models } = effectiveLimits(limits, config.limits)
      return [[null, whole] as const, ...models].flatMap(([model, { budget }]) =>
        (budget ? [{ key: name, model, per: budget.per, limit_usd: budget.usd }] : []))
    })
}

function createAlert(
  kind: Alert['kind'], severity: Alert['severity'], message: string, subject: string | null = null,
  since: number | null = null,
): Alert {
  return { kind, severity, message, subject, since: isoTimeOrNull(since) }
}

/** The worst first, and of those the newest. */
export function sortAlerts(concerns: readonly Alert[]): Alert[] {
  const weight = ({ severity }: Alert) => (severity === 'error' ? 0 : 1)
  return [...concerns].sort((a, b) => weight(a) - weight(b) || (b.since ?? '').localeCompare(a.since ?? ''))
}

