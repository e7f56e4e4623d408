import { sortAlerts, clusterAlerts, gatewayAlerts, budgetAlerts, unpricedAlerts } from './alerts.ts'
import type { Live, UpstreamState } from './api/panel.ts'
import { cached } from './cached.ts'
import { addressOf, candidateStates, healthOf } from './candidates.ts'
import { ownKey } from './context.ts'
import type { Context, Operations } from './context.ts'
import { NO_FIGURES } from './no-figures.ts'
import { isoTime } from './texts.ts'
import type { Workers } from './workers.ts'

type LiveOperations = Pick<Operations, 'GET /live' | 'GET /upstreams'>

/** Requests in progress, and alerts: more are not listed one by one. */
const MAX_ITEMS = 100
/** ms for which holds what the ledger says of concerns; the pages ask every few seconds. */
const CACHE_MS = 30_000
const NO_TRAFFIC = { figures: NO_FIGURES, first_byte: { p50_ms: null, p95_ms: null }, share: 0 }

/** What the gateway does at this moment, all its workers together. */
export function liveOperations({ host, clock, reports }: Context, workers: Workers): LiveOperations {
  const ofLedger = cached(async () => {
    const gateway = host.current()
    if (gateway.accounts.ledger === null) return { unpriced: [], budgets: [] }
    const [models, budgets] = await Promise.all([
      unpricedAlerts(gateway, reports, clock.wall()), budgetAlerts(gateway, reports),
    ])
    return { unpriced: models, budgets }
  }, CACHE_MS, () => clock.monotonic())

  return {
    'GET /live': async asked => {
      const own = ownKey(asked)
      const gateway = host.current()
      const now = clock.wall()
      const all = await workers.all(own)
      const exchanges = all.flatMap(({ exchanges }) => exchanges)
        .map(one => (own === null ? one : { ...one, upstream: null }))
        .sort((a, b) => (a.started_at < b.started_at ? -1 : 1))
      // A failing ledger has an alert of its own; the others are still shown.
      const { unpriced, budgets } = await ofLedger().catch(() => ({ unpriced: [], budgets: [] }))
      const concerns = own === null
        ? [...gatewayAlerts(gateway, all, now), ...clusterAlerts(reports), ...budgets, ...unpriced]
        : budgets.filter(({ subject }) => subject === own)
      const { draining, handingOver } = gateway.sharedState
      return {
        at: isoTime(now),
        status: draining ? 'draining' : handingOver ? 'handing_over' : 'ok',
        running: sum(all.map(({ running }) => running)),
        running_streams: sum(all.map(({ streams }) => streams)),
        exchanges: exchanges.slice(0, MAX_ITEMS),
        concerns: sortAlerts(concerns).slice(0, MAX_ITEMS),
      } satisfies Live
    },
    'GET /upstreams': async ({ query }) => {
      const gateway = host.current()
      const { config, accounts } = gateway
      const [all, used] = await Promise.all([
        workers.all(),
        accounts.ledger === null ? [] : reports.upstreamFigures(query),
      ])
      const states = candidateStates(all)
      const figures = new Map(used.map(one => [one.name, one]))
      const upstreams = [...config.upstreams.keys()].map((name): UpstreamState => {
        const candidates = states.get(name) ?? []
        const { figures: sums, first_byte, share } = figures.get(name) ?? NO_TRAFFIC
        return {
          name,
          url: addressOf(gateway, name),
          health: healthOf(candidates),
          in_flight: sum(candidates.map(({ in_flight: count }) => count)),
          candidates,
          figures: sums,
          first_byte,
          share,
        }
      })
      return { upstreams: upstreams.sort((a, b) => b.figures.requests - a.figures.requests) }
    },
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
