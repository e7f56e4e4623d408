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
import { ReportClient, type ReportArgs, type ReportName } from './report-client.ts'
import { ReportError } from './report-error.ts'
import type { ReportTable } from './report-thread.ts'
import type { KeyUse } from './used-names.ts'

export interface ReportsOptions {
  /** Path of the ledger; null = there is no ledger, so every report is unavailable. */
  readonly file: string | null
  /** The database of all gateways; absent or null = no other gateway shares the ledger. */
  readonly cluster?: ClusterSource | null
  /** Returns ms since 1970. Default: the wall clock. */
  readonly now?: () => number
  /** Maximum ms of a report. Default: 10,000. */
  readonly deadline?: number
  /** 32 bytes with which cursors are encrypted. Default: random bytes, so that other processes cannot read the cursors. */
  readonly secret?: Uint8Array
}

const NO_OWNERS: KeyOwners = new Map()
const DEFAULT_DEADLINE = 10_000
const CSV_PAGE_SIZE = 1000

/** Creates the reports. Their thread starts with the first report. */
export function openReports(options: ReportsOptions): Reports {
  const { file, cluster = null, now = () => Date.now(), deadline = DEFAULT_DEADLINE, secret = randomBytes(32) } = options
  return new Reports(file === null ? null : new ReportClient({ file, cluster, now, deadline }), now, new Cursors(secret))
}

/**
 * Reports from the ledger, in the shapes of the API. A thread reads the ledger, so that the main thread never waits.
 *
 * `own` is the only key whose requests the user may see, and upstreams are hidden from this user; null = the user may see all. Each report
 * rejects with a ReportError: `unavailable` if the ledger cannot be read, or not in time; `bad_request` if the query is invalid;
 * `forbidden` if the user must not see the data. Any other error is a fault.
 */
export class Reports {
  /** null = there is no ledger. */
  readonly #client: ReportClient | null
  readonly #now: () => number
  readonly #cursors: Cursors

  constructor(client: ReportClient | null, now: () => number, cursors: Cursors) {
    this.#client = client
    this.#now = now
    this.#cursors = cursors
  }

  /** Why the last report includes only this gateway; null = it includes all gateways that share the ledger. */
  get clusterFailure(): string | null {
    return this.#client?.clusterFailure ?? null
  }

  panel(query: QueryOf<'GET /panel'>, own: string | null): Promise<Panel> {
    return this.#run('panel', query, own)
  }

  /** Figures of every upstream in the ledger for the period, the upstream with the most requests first. */
  upstreamFigures(query: QueryOf<'GET /upstreams'>): Promise<UpstreamFigures[]> {
    return this.#run('upstreamFigures', query)
  }

  upstreamReport(name: string, query: QueryOf<'GET /upstreams/:name'>): Promise<UpstreamReport> {
    return this.#run('upstreamReport', name, query)
  }

  /** @param owners required if the query selects or groups by owner */
  billing(query: QueryOf<'GET /billing'>, own: string | null, owners?: KeyOwners): Promise<Billing> {
    return this.#run('billing', query, own, owners ?? NO_OWNERS)
  }

  /** The table as pieces of CSV, which are created when they are read. Errors are thrown before the first piece. */
  async *billingCsv(query: QueryOf<'GET /billing.csv'>, own: string | null, owners?: () => Promise<KeyOwners>): AsyncGenerator<string> {
    const { by, groups, from, to } = await this.billing(query, own, await owners?.())
    const period = { from: Date.parse(from), to: Date.parse(to) }
    yield* csv(billingFields(by, periodName(period, this.#now())), groups)
  }

  /** The unpriced models, those with the most unpriced requests first. @param most maximum number of models */
  unpricedModels(most: number): Promise<UnpricedModel[]> {
    return this.#run('unpricedModels', most)
  }

  /** The budgets in their order, or with `limit` those with the highest share first. The cost of running requests is not included. */
  budgets(asked: readonly ConfiguredBudget[], { limit }: QueryOf<'GET /budgets'>): Promise<Budgets> {
    return this.#run('budgets', asked, limit ?? null)
  }

  /** @param share only budgets whose used share is at least this */
  nearBudgets(asked: readonly ConfiguredBudget[], share: number): Promise<NearBudget[]> {
    return this.#run('nearBudgets', asked, share)
  }

  /** The statement of a key or an owner. If `own` is null, the query must name one of them. */
  statement(query: QueryOf<'GET /statement'>, own: string | null, owners?: KeyOwners): Promise<Statement> {
    return this.#run('statement', query, own, owners ?? NO_OWNERS)
  }

  async logs({ before, after, ...query }: QueryOf<'GET /logs'>, own: string | null): Promise<Logs> {
    const { rows, next, last } = await this.#ledger.run('logs', {
      ...query,
      ...before !== undefined && { before: this.#cursors.open(before, 'before') },
      ...after !== undefined && { after: this.#cursors.open(after, 'after') },
    }, own)
    return { rows, next: next && this.#cursors.seal(next), last: last && this.#cursors.seal(last) }
  }

  /** The requests as CSV, the newest first, with the columns of `gateway usage --csv`. Errors are thrown as in `billingCsv`. */
  logsCsv(query: QueryOf<'GET /logs.csv'>, own: string | null): AsyncIterable<string> {
    return csv(rowFields(own), this.#rows(query, own))
  }

  /** The details of a request. Empty if there is no such request, or the user must not see it. */
  requestDetails(requestId: string, own: string | null): Promise<Pick<RequestDetailsList, 'stories'>> {
    return this.#run('requestDetails', requestId, own)
  }

  filters(own: string | null): Promise<Pick<ResponseOf<'GET /filters'>, 'keys' | 'models' | 'upstreams'>> {
    return this.#run('filters', own)
  }

  /** The use of each key by name. Keys without requests are not included. */
  keyUse(): Promise<Map<string, KeyUse>> {
    return this.#run('keyUse')
  }

  /** Ends the thread, and rejects the reports that wait. */
  async close(): Promise<void> {
    await this.#client?.close()
  }

  get #ledger(): ReportClient {
    if (this.#client !== null) return this.#client
    throw new ReportError('unavailable', 'No ledger is configured. Set ledger.file in gateway.yaml.')
  }

  async #run<N extends ReportName>(name: N, ...args: ReportArgs<N>): Promise<ReturnType<ReportTable[N]>> {
    return this.#ledger.run(name, ...args)
  }

  async *#rows(query: QueryOf<'GET /logs.csv'>, own: string | null): AsyncGenerator<LedgerRow> {
    let next: string | null = null
    // Fix the start, so that every page uses the same 24 hours.
    const fixed = query.from === undefined && query.to === undefined ? { ...query, from: new Date(this.#now() - DAY).toISOString() } : query
    do {
      const page: LogPage = await this.#run('logPage', fixed, own, next, CSV_PAGE_SIZE)
      yield* page.rows
      next = page.next
    } while (next !== null)
  }
}
