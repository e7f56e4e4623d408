import { ANONYMOUS_KEY } from '../context/accounts.ts'
import type { Gateway } from '../context/gateway.ts'
import { effectiveLimits } from '../limits/effective-limits.ts'
import { candidateOf } from '../routing/candidate.ts'
import type { BudgetGauge, CircuitGauge, GaugeSource } from '../telemetry/gauges.ts'

const CIRCUIT_STATES = { closed: 'closed', probing: 'half-open', open: 'open' } as const

/** The state of a gateway for its gauges. @param current the active gateway */
export function gaugeSource(current: () => Gateway): GaugeSource {
  return {
    inFlight: () => inFlight(current()),
    circuits: () => circuits(current()),
    budgets: () => budgets(current()),
    ledger: () => {
      const stats = current().accounts.ledger?.stats()
      return stats ? { pendingRows: stats.waiting, writeFailures: stats.failures } : null
    },
    shipping: () => {
      const stats = current().accounts.shipping?.stats()
      return stats ? { outboxRows: stats.pending, shippedRows: stats.shipped, failures: stats.failures } : null
    },
    certificateEnd: () => {
      const [certificate] = current().sharedState.shown.chain
      return certificate ? certificate.validToDate.getTime() : null
    },
    reloads: () => current().sharedState.reloads,
  }
}

function inFlight({ sharedState: { activeExchanges } }: Gateway): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { classified: { endpoint } } of activeExchanges) {
    if (endpoint.ownResponse === 'status') continue
    counts.set(endpoint.protocol, (counts.get(endpoint.protocol) ?? 0) + 1)
  }
  return counts
}

function circuits({ health, upstreams }: Gateway): CircuitGauge[] {
  return health.conditions().flatMap(([id, { circuit }]) => {
    const [upstream, model] = candidateOf(id)
    return upstreams.has(upstream) ? [{ upstream, model, state: CIRCUIT_STATES[circuit] }] : []
  })
}

/** Of all keys that have a budget, whether they have spent anything or not. */
function budgets({ config, keyStore, accounts: { limiter } }: Gateway): BudgetGauge[] {
  const spend = limiter.budgetSpend()
  const keys = [ANONYMOUS_KEY, ...keyStore?.keys() ?? [], ...config.keys]
  return keys.flatMap(({ name, limits }) => {
    if (limits === null && config.limits === null) return []
    const { budget } = effectiveLimits(limits, config.limits).whole
    if (budget === null) return []
    return [{ key: name, limit: Number(budget.usd), spent: Number(spend.get(name) ?? 0n) / 1e12 }]
  })
}
