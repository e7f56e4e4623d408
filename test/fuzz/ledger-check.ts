import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Received } from './client.ts'
import { BUDGETS } from './targets.ts'

/** Milliseconds in which a row has to be in the ledger. */
const PATIENCE = 10_000
const INTERVAL = 20
const PICO = 1e12

/** Every request has one row, and no key has spent more than its budget. */
export class LedgerCheck {
  readonly #file: string
  readonly #expected = new Set<string>()
  #database: DatabaseSync | null = null

  constructor(file: string) {
    this.#file = file
  }

  /** Notes the requests that these respond to. */
  expect(received: readonly Received[]): void {
    for (const { headers } of received) {
      const id = headers['x-gateway-request-id']
      if (typeof id === 'string') this.#expected.add(id)
    }
  }

  /** Waits until all rows are there. @returns what is wrong */
  async faults(): Promise<string[]> {
    if (!existsSync(this.#file)) return []
    this.#database ??= new DatabaseSync(this.#file, { readOnly: true })
    const rows = this.#database.prepare('SELECT request_id AS id, count(*) AS count FROM requests GROUP BY request_id')
    let missing: string[] = []
    let doubled: string[] = []
    for (let waited = 0; waited < PATIENCE; waited += INTERVAL) {
      const found = new Map(rows.all().map(({ id, count }) => [String(id), Number(count)]))
      missing = [...this.#expected].filter(id => !found.has(id))
      doubled = [...found].filter(([, count]) => count > 1).map(([id]) => id)
      if (missing.length === 0) break
      await new Promise(resolve => setTimeout(resolve, INTERVAL))
    }
    return [
      ...missing.slice(0, 3).map(id => `ledger: no row of ${id}, of ${missing.length} requests in all`), ...doubled.map(id => `ledger: two rows of ${id}`), ...this.#overspent(),
    ]
  }

  close(): void {
    this.#database?.close()
  }

  #overspent(): string[] {
    const sums = this.#database?.prepare('SELECT "key", sum(CAST(cost_pico_usd AS REAL)) AS pico FROM requests WHERE "key" LIKE \'budget-%\' GROUP BY "key"').all() ?? []
    return sums.flatMap(({ key, pico }) => {
      const budget = BUDGETS[Number(String(key).slice('budget-'.length))] ?? 0
      return Number(pico) / PICO > budget * (1 + 1e-9) ? [`overspends: ${key} spent ${Number(pico) / PICO} of ${budget} USD`] : []
    })
  }
}
