import { sortAlerts, clusterAlerts, gatewayAlerts, budgetAlert, nearBudgets, unpricedAlerts } from './alerts.ts'
import type { Live } from './api/panel.ts'
import { cached } from './cached.ts'
import { ownKey } from './context.ts'
import type { Context, Operations } from './context.ts'
import { isoTime } from './texts.ts'
import type { Workers } from './workers.ts'

/** Requests in progress, and alerts: more are not listed one by one. */
const MAX_ITEMS = 100
/** ms for which holds what the ledger says of concerns; the pages ask every few seconds. */
const CACHE_MS = 30_000

/** What the gateway does at this moment, all its workers together. */
export function liveOperations({ host, clock, reports }: Context, workers: Workers): Pick<Operations, 'GET /live'> {
  const ofLedger = cached(async () => {
    const gateway = host.current()
    if (gateway.accounts.ledger === null) return { unpriced: [], budgets: [] }
    const [models, budgets] = await Promise.all([
      unpricedAlerts(gateway, reports, clock.wall()), nearBudgets(gateway, reports),
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
        ? [...gatewayAlerts(gateway, all, now), ...clusterAlerts(reports), ...budgets.map(budgetAlert), ...unpriced]
        : budgets.filter(({ key }) => key === own).map(budgetAlert)
      const { shutdown } = gateway.sharedState
      return {
        at: isoTime(now),
        status: shutdown === null ? 'ok' : shutdown === 'hand_over' ? 'handing_over' : 'draining',
        running: sum(all.map(({ running }) => running)),
        running_streams: sum(all.map(({ streams }) => streams)),
        exchanges: exchanges.slice(0, MAX_ITEMS),
        concerns: sortAlerts(concerns).slice(0, MAX_ITEMS),
      } satisfies Live
    },
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
