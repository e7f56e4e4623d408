import { issuerOf } from '../../auth/callers/caller-keys.ts'
import type { Path } from '../../config/text/document.ts'
import { lineOf, type ConfigLines } from '../../config/text/lines.ts'
import { validityWarning } from '../../config/sections/pem.ts'
import { placeOf } from '../../config/problem.ts'
import type { Gateway } from '../../pipeline/parts/gateway.ts'
import { effectiveLimits } from '../../limits/effective-limits.ts'
import type { Alert } from '../api/panel.ts'
import { candidateStates } from '../state/candidates.ts'
import { modelRow } from '../state/model-rows.ts'
import { findOutages } from './outages.ts'
import type { ConfiguredBudget, NearBudget } from '../reports/budgets.ts'
import type { Reports } from '../reports/reports.ts'
import { isoTimeOrNull, isolatedName } from '../state/texts.ts'
import type { WorkerActivity, WorkerCandidate } from '../state/workers.ts'

/** Share of a budget from which on there is an alert. */
const BUDGET_ALERT_SHARE = 0.9
/** Maximum number of models with an alert: clients can invent names of models, and each name costs a look-up in the routes. */
const MAX_UNPRICED_MODELS = 100
/** ms for which the rejection of a credential is an alert. */
const REJECTION_ALERT_MS = 15 * 60_000

/** An alert with the path of the setting that it concerns, in the active configuration; null = it concerns no setting. */
export interface SettingAlert extends Alert {
  readonly setting: Path | null
}

/** All alerts that need no query to the ledger. */
export function gatewayAlerts(gateway: Gateway, all: readonly WorkerActivity[], now: number): SettingAlert[] {
  return [
    ...keyAlerts(gateway), ...configurationAlerts(gateway), ...certificateAlerts(gateway, now),
    ...ledgerAlerts(gateway), ...storeAlerts(gateway), ...upstreamAlerts(gateway, all, now),
  ]
}

function keyAlerts({ config, keyStore, sharedState: { reloads } }: Gateway): SettingAlert[] {
  const alerts: SettingAlert[] = []
  if (config.auth === 'keys' && config.keys.length + config.callers.length === 0 && (keyStore?.keys().length ?? 0) === 0) {
    alerts.push(createAlert('no_keys', 'error', 'No keys: all requests are refused. Create a key on the Keys page', { setting: ['keys'] }))
  }
  const storeFailure = keyStore?.failure ?? null
  if (storeFailure !== null) {
    alerts.push(createAlert('key_store', 'error', `Stored keys cannot be read: ${storeFailure}. The keys read last stay valid`))
  }
  const { loadedAt, failure, pending } = reloads
  if (failure === null && pending.length > 0) {
    const message = `Restart needed: ${pending.join(', ')} changed`
    alerts.push(createAlert('restart_needed', 'warning', message, { since: loadedAt, setting: pending[0]?.split('.') }))
  }
  return alerts
}

function configurationAlerts({ sharedState: { reloads: { failure } } }: Gateway): SettingAlert[] {
  const worst = failure?.problems.find(({ severity }) => severity === 'error')
  if (!failure || !worst) return []
  const more = failure.problems.length === 1 ? '' : ` (and ${failure.problems.length - 1} more)`
  const cause = `${placeOf(worst)}: ${worst.message}${more}`
  const message = `Last reload rejected: ${cause}. The previous configuration stays active`
  return [{ ...createAlert('reload_failed', 'error', message, { since: failure.at }), line: worst.line }]
}

function certificateAlerts({ sharedState: { shown: { chain } } }: Gateway, now: number): SettingAlert[] {
  return chain.flatMap((each, index) => {
    const warning = validityWarning(each, index, now)
    if (warning === null) return []
    const severity = each.validToDate.getTime() < now ? 'error' : 'warning'
    const message = `server.tls.cert: ${warning}. Renew it, then reload with SIGHUP`
    return [createAlert('certificate', severity, message, { setting: ['server', 'tls', 'cert'] })]
  })
}

function ledgerAlerts({ accounts: { ledger } }: Gateway): SettingAlert[] {
  if (ledger === null) {
    return [createAlert('ledger', 'warning', 'No ledger: usage is not recorded. Set ledger.file in gateway.yaml')]
  }
  if (ledger.stats().healthy) return []
  return [createAlert(
    'ledger', 'error', 'The ledger cannot be written. Check its disk and the gateway log', { setting: ['ledger', 'file'] },
  )]
}

function storeAlerts({ sharedState: { stores } }: Gateway): SettingAlert[] {
  return stores.all.flatMap(({ name, failure, since }) => {
    if (failure === null) return []
    const message = `${name === 'valkey' ? 'Valkey' : 'PostgreSQL'} takes no writes: ${failure}`
    return [createAlert('store', 'error', message, { since, subject: name, setting: ['cluster', name] })]
  })
}

function upstreamAlerts({ config }: Gateway, all: readonly WorkerActivity[], now: number): SettingAlert[] {
  const alerts = new Map<string, SettingAlert>()
  for (const [name, { reason, at }] of all.flatMap(({ credentialFailures }) => credentialFailures)) {
    if (at < now - REJECTION_ALERT_MS) continue
    const message = `Upstream ${name}: credentials: ${reason}. Check upstreams.${name}.auth`
    // `at` is the time of the latest rejection. It does not change the id of the alert.
    alerts.set(`rejected ${name}`, createAlert('upstream_key_rejected', 'error', message, {
      subject: name, since: at, about: [name], setting: ['upstreams', name, 'auth'],
    }))
  }
  const open = all.flatMap(({ candidates }) => candidates).filter(({ circuit }) => circuit !== 'closed')
  const outageOf = findOutages(config.routes, candidateStates(all))
  // Each worker has its own circuits. Of the circuits of one target, the circuit that opened first makes the alert.
  for (const candidate of open.sort((a, b) => (a.open_since ?? '').localeCompare(b.open_since ?? ''))) {
    const { upstream, model, open_since: since } = candidate
    const id = `circuit ${upstream} ${model}`
    if (alerts.has(id)) continue
    // If the route has other targets, its requests are still served: then the alert is a warning.
    const outage = outageOf(upstream, model)
    const severity = outage === null ? 'warning' : 'error'
    const alert = createAlert('circuit_open', severity, circuitMessage(candidate), { subject: upstream, about: [upstream, model, since] })
    alerts.set(id, { ...alert, since: since ?? null, line: outage?.line ?? null })
  }
  return [...alerts.values()]
}

function circuitMessage(candidate: WorkerCandidate): string {
  const { upstream, model, circuit, opens_in_ms, consecutive_failures: failures } = candidate
  const state = circuit === 'open' ? 'Circuit open' : 'Circuit half-open'
  const what = model === null ? upstream : `${isolatedName(model)} on ${upstream}`
  const why = circuit === 'open' && opens_in_ms === null ? ' (health checks fail)'
    : failures > 1 ? ` (${failures} consecutive failures)`
    : ''
  return `${state}: ${what}${why}`
}

/** An alert that PostgreSQL cannot be read: meanwhile, all pages show only a part of the requests. */
export function clusterAlerts({ clusterFailure }: Reports): SettingAlert[] {
  if (clusterFailure === null) return []
  const message = `PostgreSQL cannot be read: ${clusterFailure}. All pages show the requests of this gateway only`
  return [createAlert('cluster', 'error', message, { setting: ['cluster', 'postgres'] })]
}

/**
 * Alerts for unpriced models of the last 24 hours. A price that is added later does not change the cost of earlier requests.
 * @param now ms since 1970
 */
export async function unpricedAlerts(gateway: Gateway, reports: Reports, now: number): Promise<SettingAlert[]> {
  const models = await reports.unpricedModels(MAX_UNPRICED_MODELS)
  return models.map(({ name, requests: count }) => {
    const requests = `${count} request${count === 1 ? '' : 's'} in the last 24 hours`
    const isMissing = modelRow(gateway, name, false, new Date(now)).price === null
    const message = isMissing
      ? `No price for ${isolatedName(name)}: cost unknown for ${requests}. Add a price under models in gateway.yaml`
      : `Cost unknown for ${requests} for ${isolatedName(name)}: no price at that time, or none for the usage`
    return createAlert('unpriced_model', 'warning', message, { subject: name, setting: isMissing ? ['models', name] : null })
  })
}

export interface BudgetAlert {
  /** Name of the key; null = the budget of a group. */
  readonly key: string | null
  readonly alert: SettingAlert
}

export async function budgetAlerts(gateway: Gateway, reports: Reports): Promise<BudgetAlert[]> {
  const near = await reports.nearBudgets(budgetsOf(gateway, null), BUDGET_ALERT_SHARE)
  const keyLines = new Map(gateway.config.keys.map(({ name, line }) => [name, line ?? null]))
  return near.map(each => ({
    key: each.key,
    alert: each.key === null ? budgetAlert(each) : { ...budgetAlert(each), line: keyLines.get(each.key) ?? null },
  }))
}

function budgetAlert({ key, group, model, per, limit_usd: limit, used }: NearBudget): SettingAlert {
  const name = key ?? group?.name ?? ''
  const holder = key === null ? `group ${isolatedName(name)}` : isolatedName(name)
  const models = model === null ? '' : ` for ${isolatedName(model)}`
  const state = used >= 1 ? 'Budget used up' : `Budget ${Math.floor(used * 100)} % used`
  const message = `${state}: ${holder}${models}, $${limit} ${per === 'total' ? 'in total' : `per ${per}`}`
  const setting = key === null ? ['groups', name, 'limits'] : null
  return createAlert('budget', used >= 1 ? 'error' : 'warning', message, { subject: name, about: [key, group?.name, model], setting })
}

/** @param own the only key whose budgets are returned; null = the budgets of all keys and groups */
export function budgetsOf(gateway: Gateway, own: string | null): ConfiguredBudget[] {
  return [...keyBudgets(gateway, own), ...own === null ? groupBudgets(gateway) : []]
}

function groupBudgets({ config: { groups } }: Gateway): ConfiguredBudget[] {
  return [...groups.values()].flatMap(({ name, members, limits }) => {
    const budget = limits?.budget ?? null
    return budget === null ? [] : [{ key: null, group: { name, members }, model: null, per: budget.per, limit_usd: budget.usd }]
  })
}

function keyBudgets({ config, keyStore }: Gateway, own: string | null): ConfiguredBudget[] {
  const caller = own === null ? null : issuerOf(own, config.callers)
  const callers = own === null || caller === null ? [] : [{ name: own, limits: caller.limits }]
  const keys = new Map([...keyStore?.keys() ?? [], ...config.keys, ...callers].map(({ name, limits }) => [name, { name, limits }]))
  return [...keys.values()]
    .filter(({ name }) => own === null || name === own)
    .flatMap(({ name, limits }) => {
      if (limits === null && config.limits === null) return []
      const { whole, models } = effectiveLimits(limits, config.limits)
      return [[null, whole] as const, ...models].flatMap(([model, { budget }]) =>
        (budget ? [{ key: name, group: null, model, per: budget.per, limit_usd: budget.usd }] : []))
    })
}

interface AlertDetails {
  readonly subject?: string | null
  /** Start of the alert, in ms since 1970. */
  readonly since?: number | null
  /** Values that make the id unique among alerts of the same kind and severity; default: subject and start. */
  readonly about?: readonly unknown[]
  readonly setting?: Path | null | undefined
}

function createAlert(
  kind: Alert['kind'], severity: Alert['severity'], message: string,
  { subject = null, since = null, about = [subject, since], setting = null }: AlertDetails = {},
): SettingAlert {
  const id = JSON.stringify([kind, severity, ...about])
  return { id, kind, severity, message, subject, since: isoTimeOrNull(since), line: null, setting }
}

/** @param lines null = the lines are unknown, or the user must not see them */
export function withLine({ setting, ...alert }: SettingAlert, lines: ConfigLines | null): Alert {
  if (lines === null) return { ...alert, line: null }
  return { ...alert, line: setting === null ? alert.line : lineOf(lines, setting) }
}

/** Sorts errors before warnings. Within each, the newest is first. */
export function sortAlerts<T extends Alert>(alerts: readonly T[]): T[] {
  const weight = ({ severity }: Alert) => (severity === 'error' ? 0 : 1)
  return [...alerts].sort((a, b) => weight(a) - weight(b) || (b.since ?? '').localeCompare(a.since ?? ''))
}
