import { isoTime } from '../base/clock.ts'
import type { ConfigLines } from '../config/text/lines.ts'
import type { Gateway } from '../pipeline/parts/gateway.ts'
import { sortAlerts, clusterAlerts, gatewayAlerts, budgetAlerts, unpricedAlerts, withLine } from './alerts/alerts.ts'
import type { Live } from './api/panel.ts'
import { cached } from './http/cached.ts'
import { ownKey, type Context, type Operations } from './context.ts'
import type { Workers } from './state/workers.ts'

/** Maximum number of requests, and maximum number of alerts, in a response. */
const MAX_ITEMS = 100
/** ms for which results are cached, because the pages ask every few seconds. */
const CACHE_MS = 30_000

/** Operations on the current state of the gateway, including all workers. */
export function liveOperations({ host, clock, reports, store }: Context, workers: Workers): Pick<Operations, 'GET /live'> {
  const ofLedger = cached(async () => {
    const gateway = host.current()
    if (gateway.accounts.ledger === null) return { unpriced: [], budgets: [] }
    const [models, budgets] = await Promise.all([unpricedAlerts(gateway, reports, clock.wall()), budgetAlerts(gateway, reports)])
    return { unpriced: models, budgets }
  }, CACHE_MS, () => clock.monotonic())

  let known: { readonly text: string, readonly lines: Promise<ConfigLines> } | null = null
  /** Reads the lines of a configuration once for each configuration. */
  const activeLines = ({ config: { text } }: Gateway): Promise<ConfigLines> => {
    if (known?.text === text) return known.lines
    // If the lines cannot be read, the alerts have no lines.
    const lines = store.call('lines', text).catch(() => new Map<string, number>())
    known = { text, lines }
    return lines
  }

  return {
    'GET /live': async asked => {
      const own = ownKey(asked)
      const gateway = host.current()
      const now = clock.wall()
      const all = await workers.all(own)
      const exchanges = all.flatMap(({ exchanges }) => exchanges).map(one => (own === null ? one : { ...one, upstream: null }))
        .sort((a, b) => (a.started_at < b.started_at ? -1 : 1))
      // If the ledger fails, return the other alerts: `ledgerAlerts` reports the failure.
      const { unpriced, budgets } = await ofLedger().catch(() => ({ unpriced: [], budgets: [] }))
      const concerns = own === null
        ? [...gatewayAlerts(gateway, all, now), ...clusterAlerts(reports), ...budgets.map(({ alert }) => alert), ...unpriced]
        : budgets.filter(({ key }) => key === own).map(({ alert }) => alert)
      const shown = sortAlerts(concerns).slice(0, MAX_ITEMS)
      const hasSettings = own === null && shown.some(({ setting }) => setting !== null)
      const lines = own !== null ? null : hasSettings ? await activeLines(gateway) : new Map<string, number>()
      const { shutdown } = gateway.sharedState
      return {
        at: isoTime(now),
        status: shutdown === null ? 'ok' : shutdown === 'hand_over' ? 'handing_over' : 'draining',
        running: sum(all.map(({ running }) => running)),
        running_streams: sum(all.map(({ streams }) => streams)),
        exchanges: exchanges.slice(0, MAX_ITEMS),
        concerns: shown.map(alert => withLine(alert, lines)),
      } satisfies Live
    },
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
