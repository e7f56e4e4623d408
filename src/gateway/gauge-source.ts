import { ANONYMOUS_KEY } from '../pipeline/parts/accounts.ts'
import type { Gateway } from '../pipeline/parts/gateway.ts'
import { idOf, type LimitedKey } from '../limits/types.ts'
import { PROTOCOLS } from '../protocols/index.ts'
import { candidateOf } from '../routing/candidate.ts'
import type { BudgetGauge, CircuitGauge, GaugeSource } from '../telemetry/gauges.ts'
import { budgetOf } from './alerts/budget-check.ts'

const CIRCUIT_STATES = { closed: 'closed', probing: 'half-open', open: 'open' } as const

export function gaugeSource(current: () => Gateway): GaugeSource {
  return {
    inFlight: () => inFlight(current()),
    queued: () => queued(current()),
    circuits: () => circuits(current()),
    hookCircuits: () => {
      const { hooks } = current()
      return hooks === null ? [] : hooks.names.map(hook => ({ hook, state: CIRCUIT_STATES[hooks.condition(hook).circuit] }))
    },
    budgets: () => budgets(current()),
    ledger: () => {
      const stats = current().accounts.ledger?.stats()
      return stats ? { pendingRows: stats.waiting, writeFailures: stats.failures } : null
    },
    shipping: () => {
      const stats = current().accounts.shipping?.stats()
      return stats ? { outboxRows: stats.pending, shippedRows: stats.shipped, failures: stats.failures } : null
    },
    stores: () => current().sharedState.stores.all.map(({ name, failure }) => ({ name, isWritable: failure === null })),
    certificateEnd: () => {
      const [certificate] = current().sharedState.shown.chain
      return certificate ? certificate.validToDate.getTime() : null
    },
    reloads: () => current().sharedState.reloads,
  }
}

function inFlight({ sharedState: { activeExchanges } }: Gateway): ReadonlyMap<string, number> {
  // Report 0 too, because otherwise an average over time would be wrong.
  const counts = new Map(PROTOCOLS.filter(({ paths }) => paths.length > 0).map(({ name }): [string, number] => [name, 0]))
  for (const { classified: { endpoint } } of activeExchanges) {
    if (endpoint.ownResponse === 'status') continue
    counts.set(endpoint.protocol, (counts.get(endpoint.protocol) ?? 0) + 1)
  }
  return counts
}

function queued({ sharedState: { activeExchanges } }: Gateway): ReadonlyMap<string, number> {
  const counts = new Map<string, number>([['key', 0], ['group', 0], ['upstream', 0]])
  for (const { waiting } of activeExchanges) if (waiting !== null) counts.set(waiting.scope, (counts.get(waiting.scope) ?? 0) + 1)
  return counts
}

function circuits({ health, upstreams }: Gateway): CircuitGauge[] {
  return health.conditions().flatMap(([id, { circuit }]) => {
    const [upstream, model] = candidateOf(id)
    return upstreams.has(upstream) ? [{ upstream, model, state: CIRCUIT_STATES[circuit] }] : []
  })
}

/** The budgets of all keys and groups, including those that have spent nothing. */
function budgets({ config, keyStore, accounts: { limiter } }: Gateway): BudgetGauge[] {
  const spend = limiter.budgetSpend()
  const holders: readonly LimitedKey[] = [ANONYMOUS_KEY, ...keyStore?.keys() ?? [], ...config.keys, ...config.groups.values()]
  return holders.flatMap(holder => {
    const budget = budgetOf(holder, config)
    if (budget === null) return []
    const spent = Number(spend.get(idOf(holder)) ?? 0n) / 1e12
    return [{ holder: holder.isGroup ? 'group' : 'key', name: holder.name, limit: Number(budget.usd), spent }]
  })
}
