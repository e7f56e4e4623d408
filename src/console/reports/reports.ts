import { randomBytes } from 'node:crypto'
import type { KeyOwners } from '../../auth/key-owners.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import type { QueryOf, ResponseOf } from '../api/api.ts'
import type { Billing, Budgets, Statement } from '../api/billing.ts'
import type { Logs, RequestDetailsList } from '../api/logs.ts'
import type { Panel } from '../api/panel.ts'
import type { UpstreamReport } from '../api/upstream.ts'
import type { UnpricedModel } from './billing.ts'
import type { ConfiguredBudget, NearBudget } from './budgets.ts'
import type { ClusterSource } from './cluster-view.ts'
import { billingFields, csv, rowFields } from './csv.ts'
import { Cursors } from './cursors.ts'
import type { LogPage } from './logs.ts'
import type { UpstreamFigures } from './panel.ts'
import { DAY, periodName } from './period.ts'
import { ReportClient } from './report-client.ts'
import { ReportError } from './report-error.ts'
import type { KeyUse } from './used-names.ts'

/**
 * Reports from the ledger, in the shapes of the console's API. A thread reads the ledger, so the gateway's main
 * thread never waits.
 *
 * `own` is the only key whose requests the user may see, and its holder sees no upstreams; null = the user may see
 * all. Each report rejects with a ReportError: `unavailable` if the ledger cannot be read, or not in time;
 * `bad_request` for an invalid query; `forbidden` for what `own` must not see; any other error is a fault.
 */
export interface Reports {
  /** Why the last report covers this gateway only; null = it covers all that share the ledger. */
  readonly clusterFailure: string | null
  panel(query: QueryOf<'GET /panel'>, own: string | null): Promise<Panel>
  /** Every upstream in the ledger for that period, the busiest first. */
  upstreamFigures(query: QueryOf<'GET /upstreams'>): Promise<UpstreamFigures[]>
  /** @param owners required if the query is about owners */
  /** @param name of an upstream */
  upstreamReport(name: string, query: QueryOf<'GET /upstreams/:name'>): Promise<UpstreamReport>
  billing(query: QueryOf<'GET /billing'>, own: string | null, owners?: KeyOwners): Promise<Billing>
  /** Pieces of text, produced on demand. Errors are thrown before the first. */
  billingCsv(query: QueryOf<'GET /billing.csv'>, own: string | null, owners?: () => Promise<KeyOwners>): AsyncIterable<string>
  /** The models with the most recent requests of unknown cost, at most `most`. */
  unpricedModels(most: number): Promise<UnpricedModel[]>
  /** Budgets with the cost in the ledger, without running requests. All in their order, or with `limit` the fullest. */
  budgets(asked: readonly ConfiguredBudget[], query: QueryOf<'GET /budgets'>): Promise<Budgets>
  /** The budgets of which at least this share is used. */
  nearBudgets(asked: readonly ConfiguredBudget[], share: number): Promise<NearBudget[]>
  /** Without `own`, the query must name the key or an owner. */
  statement(query: QueryOf<'GET /statement'>, own: string | null, owners?: KeyOwners): Promise<Statement>
  logs(query: QueryOf<'GET /logs'>, own: string | null): Promise<Logs>
  /** Newest first, in the columns of `gateway usage --csv`. Otherwise like billingCsv. */
  logsCsv(query: QueryOf<'GET /logs.csv'>, own: string | null): AsyncIterable<string>
  /** Empty if there is no such request, or none that `own` may see. */
  requestDetails(requestId: string, own: string | null): Promise<Pick<RequestDetailsList, 'stories'>>
  filters(own: string | null): Promise<Omit<ResponseOf<'GET /filters'>, 'owners'>>
  /** By the name of the key, without keys that were never used. */
  keyUse(): Promise<Map<string, KeyUse>>
  /** Ends the thread and rejects the waiting reports. */
  close(): Promise<void>
}

export interface ReportsOptions {
  /** Path of the ledger; null = none is configured, and every report is unavailable. */
  readonly file: string | null
  /** Where the shared ledger is; absent = this gateway's is the only one. */
  readonly cluster?: ClusterSource | null
  /** ms since 1970; default: the wall clock. */
  readonly now?: () => number
  /** ms for a report; default 10,000. */
  readonly deadline?: number
  /** 32 bytes that encrypt cursors; default: random, so no other process can read them. */
  readonly secret?: Uint8Array
}

const NO_OWNERS: KeyOwners = new Map()
const DEFAULT_DEADLINE = 10_000
const CSV_PAGE_SIZE = 1000

/** Creates the reports. Their thread starts with the first one. */
export function openReports(options: ReportsOptions): Reports {
  const { file, cluster = null, now = () => Date.now(), deadline = DEFAULT_DEADLINE, secret = randomBytes(32) } = options
  if (file === null) return new UnavailableReports()
  return new ThreadedReports(new ReportClient({ file, cluster, now, deadline }), now, new Cursors(secret))
}

class ThreadedReports implements Reports {
  readonly #client: ReportClient
  readonly #now: () => number
  readonly #cursors: Cursors

  constructor(link: ReportClient, now: () => number, cursors: Cursors) {
    this.#client = link
    this.#now = now
    this.#cursors = cursors
  }

  get clusterFailure(): string | null {
    return this.#client.clusterFailure
  }

  panel(query: QueryOf<'GET /panel'>, own: string | null): Promise<Panel> {
    return this.#client.run('panel', query, own)
  }

  upstreamFigures(query: QueryOf<'GET /upstreams'>): Promise<UpstreamFigures[]> {
    return this.#client.run('upstreamFigures', query)
  }

  upstreamReport(name: string, query: QueryOf<'GET /upstreams/:name'>): Promise<UpstreamReport> {
    return this.#client.run('upstreamReport', name, query)
  }

  billing(query: QueryOf<'GET /billing'>, own: string | null, owners?: KeyOwners): Promise<Billing> {
    return this.#client.run('billing', query, own, owners ?? NO_OWNERS)
  }

  async *billingCsv(
    query: QueryOf<'GET /billing.csv'>, own: string | null, owners?: () => Promise<KeyOwners>,
  ): AsyncGenerator<string> {
    const { by, groups, from, to } = await this.billing(query, own, await owners?.())
    const period = { from: Date.parse(from), to: Date.parse(to) }
    yield* csv(billingFields(by, periodName(period, this.#now())), groups)
  }

  unpricedModels(most: number): Promise<UnpricedModel[]> {
    return this.#client.run('unpricedModels', most)
  }

  budgets(asked: readonly ConfiguredBudget[], { limit }: QueryOf<'GET /budgets'>): Promise<Budgets> {
    return this.#client.run('budgets', asked, limit ?? null)
  }

  nearBudgets(asked: readonly ConfiguredBudget[], share: number): Promise<NearBudget[]> {
    return this.#client.run('nearBudgets', asked, share)
  }

  statement(query: QueryOf<'GET /statement'>, own: string | null, owners?: KeyOwners): Promise<Statement> {
    return this.#client.run('statement', query, own, owners ?? NO_OWNERS)
  }

  async logs({ before, after, ...query }: QueryOf<'GET /logs'>, own: string | null): Promise<Logs> {
    const { rows, next, last } = await this.#client.run('logs', {
      ...query,
      ...before !== undefined && { before: this.#cursors.open(before, 'before') },
      ...after !== undefined && { after: this.#cursors.open(after, 'after') },
    }, own)
    return { rows, next: next && this.#cursors.seal(next), last: last && this.#cursors.seal(last) }
  }

  logsCsv(query: QueryOf<'GET /logs.csv'>, own: string | null): AsyncIterable<string> {
    return csv(rowFields(own), this.#rows(query, own))
  }

  requestDetails(requestId: string, own: string | null): Promise<Pick<RequestDetailsList, 'stories'>> {
    return this.#client.run('requestDetails', requestId, own)
  }

  filters(own: string | null): Promise<Omit<ResponseOf<'GET /filters'>, 'owners'>> {
    return this.#client.run('filters', own)
  }

  keyUse(): Promise<Map<string, KeyUse>> {
    return this.#client.run('keyUse')
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async *#rows(query: QueryOf<'GET /logs.csv'>, own: string | null): AsyncGenerator<LedgerRow> {
    let next: string | null = null
    // Keep the first page's last 24 hours for all pages.
    const fixed = query.from === undefined && query.to === undefined
      ? { ...query, from: new Date(this.#now() - DAY).toISOString() }
      : query
    do {
      const page: LogPage = await this.#client.run('logPage', fixed, own, next, CSV_PAGE_SIZE)
      yield* page.rows
      next = page.next
    } while (next !== null)
  }
}

/** For a configuration without a ledger. */
class UnavailableReports implements Reports {
  readonly clusterFailure = null
  panel = rejectUnavailable
  upstreamFigures = rejectUnavailable
  upstreamReport = rejectUnavailable
  billing = rejectUnavailable
  billingCsv = rejectUnavailableText
  unpricedModels = rejectUnavailable
  budgets = rejectUnavailable
  nearBudgets = rejectUnavailable
  statement = rejectUnavailable
  logs = rejectUnavailable
  logsCsv = rejectUnavailableText
  requestDetails = rejectUnavailable
  filters = rejectUnavailable
  keyUse = rejectUnavailable

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function rejectUnavailable(): Promise<never> {
  return Promise.reject(new ReportError('unavailable',
    'No ledger is configured. Set ledger.file in gateway.yaml.'))
}

// oxlint-disable-next-line require-yield
async function* rejectUnavailableText(): AsyncGenerator<string> {
  await rejectUnavailable()
}
