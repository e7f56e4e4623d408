import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Test } from 'tap'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

/** USD per million tokens: whole numbers, so that a token costs as many millionths of a USD. */
export const PRICES = { input: 3, cached: 1, write: 4, writeHour: 6, output: 15, reasoning: 20 } as const

/** The prices for each named model. */
export function priced(...models: string[]): string {
  const price = `{ input: ${PRICES.input}, cached_input: ${PRICES.cached}, `
    + `cache_write: { 5m: ${PRICES.write}, 1h: ${PRICES.writeHour} }, `
    + `output: ${PRICES.output}, reasoning: ${PRICES.reasoning} }`
  return `models:\n${models.map(model => `  "${model}": { price: ${price} }\n`).join('')}`
}

interface Used {
  readonly input: number
  readonly output: number
  readonly cached?: number
  readonly write?: number
  readonly writeHour?: number
  readonly reasoning?: number
}

/** @returns the cost at PRICES in 10^-12 USD, by the formula of the docs */
export function costOf({ input, output, cached = 0, write = 0, writeHour = 0, reasoning = 0 }: Used): bigint {
  const fresh = input - cached - write - writeHour
  const said = output - reasoning
  return 1_000_000n * BigInt(
    fresh * PRICES.input + cached * PRICES.cached + write * PRICES.write + writeHour * PRICES.writeHour
    + said * PRICES.output + reasoning * PRICES.reasoning,
  )
}

/** The files of a gateway in a separate process. @param models lines of YAML */
export function filesFor(
  url: string, models: string, { upstream = '', route = '' } = {},
): { readonly 'gateway.yaml': string } {
  return {
    'gateway.yaml': `server: { listen: 127.0.0.1:0 }
upstreams: { up: { url: "${url}"${upstream} } }
routes: [{ to: up${route} }]
keys: [{ name: team, key: ${KEY} }]
log: { level: warn }
ledger: { file: ledger.db }
${models}`,
  }
}

/** A gateway with a ledger. */
export interface Books {
  readonly gateway: TestGateway
  readonly file: string
  /** Closes the gateway. @returns every row of its ledger, by request id */
  close(): Promise<Map<string, LedgerRow>>
  /**
   * Closes the gateway after all requests are settled, even on a slow machine; close() would
   * count unsettled requests by bytes. All requests must have ended.
   */
  drain(): Promise<Map<string, LedgerRow>>
}

/** Starts a gateway with a ledger file in the directory of the test. */
export async function openBooks(t: Test, yaml: string, file?: string): Promise<Books> {
  const gateway = await startTestGateway(t, `${yaml}\nledger: { file: ${file ?? 'ledger.db'} }\n`)
  const path = file ?? join(dirname(gateway.file), 'ledger.db')
  return {
    gateway,
    file: path,
    close: async () => {
      await gateway.close()
      return rowsIn(t, path)
    },
    drain: async () => {
      await gateway.drain()
      return rowsIn(t, path)
    },
  }
}

/** All rows of a ledger; fails if a request has two rows. */
export function rowsIn(t: Test, file: string): Map<string, LedgerRow> {
  using reader = openReader(file)
  const rows = [...reader.rows({})]
  const byId = new Map(rows.map(row => [row.requestId, row]))
  t.equal(byId.size, rows.length, 'one row for each request')
  return byId
}

/** The figures of a row, with the names of Used. */
export function usedIn({ usage }: LedgerRow): Required<Used> {
  return {
    input: usage.inputTokens ?? 0,
    output: usage.outputTokens ?? 0,
    cached: usage.cachedInputTokens ?? 0,
    write: usage.cacheWrite5mTokens ?? 0,
    writeHour: usage.cacheWrite1hTokens ?? 0,
    reasoning: usage.reasoningTokens ?? 0,
  }
}

/** Output tokens of the running requests in the ledger. */
export function outputsIn(file: string): unknown[] {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
  return db.prepare('SELECT output_tokens FROM in_flight').all().map(row => row['output_tokens'])
}
