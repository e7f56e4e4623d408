import { ownersOf, type KeyOwners } from '../auth/key-owners.ts'
import { budgetsOf } from './alerts/alerts.ts'
import { bodyOperations } from './bodies.ts'
import { callerOperations } from './callers.ts'
import { ownKey, type Context, type Operations } from './context.ts'
import { keyOperations } from './keys.ts'
import { liveOperations } from './live.ts'
import { ownKeyOperations } from './own-keys.ts'
import { periodName, periodOf, wholeDays } from './reports/period.ts'
import { routeOperations } from './routes.ts'
import { sessionOperations } from './session-operations.ts'
import { upstreamOperations } from './upstreams.ts'
import type { Workers } from './state/workers.ts'

export function createOperations(context: Context, workers: Workers): Operations {
  const { host, reports } = context
  /** The owners of keys, if the query needs them; otherwise an empty map. */
  const ownersFor = async ({ by, owner }: { readonly by?: string, readonly owner?: string }): Promise<KeyOwners> =>
    (owner !== undefined || by?.split(',').includes('owner') === true ? keyOwners(context) : new Map())
  return {
    ...sessionOperations(context),
    ...liveOperations(context, workers),
    ...upstreamOperations(context, workers),
    ...keyOperations(context),
    ...callerOperations(context),
    ...ownKeyOperations(context),
    ...routeOperations(context, workers),
    ...bodyOperations(context),
    'GET /panel': asked => reports.panel(asked.query, ownKey(asked)),
    'GET /billing': async asked => reports.billing(asked.query, ownKey(asked), await ownersFor(asked.query)),
    'GET /billing.csv': asked => {
      const now = context.clock.wall()
      return {
        name: `billing-${periodName(wholeDays(periodOf(asked.query, now)), now)}`,
        pieces: reports.billingCsv(asked.query, ownKey(asked), () => ownersFor(asked.query)),
      }
    },
    'GET /budgets': asked => reports.budgets(budgetsOf(host.current(), ownKey(asked)), asked.query),
    'GET /statement': async asked => reports.statement(asked.query, ownKey(asked), await ownersFor(asked.query)),
    'GET /logs': asked => reports.logs(asked.query, ownKey(asked)),
    'GET /logs.csv': asked => ({ name: 'logs', pieces: reports.logsCsv(asked.query, ownKey(asked)) }),
    'GET /filters': async asked => {
      const own = ownKey(asked)
      const [names, owners] = await Promise.all([reports.filters(own), own === null ? keyOwners(context) : new Map()])
      return { ...names, owners: [...new Set(owners.values())].sort() }
    },
  }
}

async function keyOwners({ host, store }: Pick<Context, 'host' | 'store'>): Promise<KeyOwners> {
  const { config, keyStore } = host.current()
  return ownersOf(config.keys, keyStore === null ? [] : (await store.call('storedKeys')).keys)
}
