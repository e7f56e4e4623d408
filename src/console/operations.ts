import { budgetsOf } from './alerts.ts'
import { bodyOperations } from './bodies.ts'
import { ownKey } from './context.ts'
import type { Context, Operations } from './context.ts'
import { keyOperations } from './keys.ts'
import { liveOperations } from './live.ts'
import { routeOperations } from './routes.ts'
import { sessionOperations } from './session-operations.ts'
import type { Workers } from './workers.ts'

/** What stands behind each operation of the API. */
export function createOperations(context: Context, workers: Workers): Operations {
  const { host, reports } = context
  return {
    ...sessionOperations(context),
    ...liveOperations(context, workers),
    ...keyOperations(context),
    ...routeOperations(context, workers),
    ...bodyOperations(context),
    'GET /panel': asked => reports.panel(asked.query, ownKey(asked)),
    'GET /billing': asked => reports.billing(asked.query, ownKey(asked)),
    'GET /billing.csv': asked => reports.billingCsv(asked.query, ownKey(asked)),
    'GET /budgets': asked => reports.budgets(budgetsOf(host.current(), ownKey(asked)), asked.query),
    'GET /statement': asked => reports.statement(asked.query, ownKey(asked)),
    'GET /logs': asked => reports.logs(asked.query, ownKey(asked)),
    'GET /logs.csv': asked => reports.logsCsv(asked.query, ownKey(asked)),
    'GET /filters': asked => reports.filters(ownKey(asked)),
  }
}
