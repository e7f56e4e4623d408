import { COLUMNS } from './columns.ts'
import type { RowValues } from './columns.ts'
import { Contributions, PART_SIZE, toCountedRow } from './contributions.ts'
import type { CountedRow } from './contributions.ts'

type ColumnName = (typeof COLUMNS)[number]

const COLUMN_INDEX = Object.fromEntries(COLUMNS.map((name, at) => [name, at])) as Readonly<Record<ColumnName, number>>
const COST_PART = BigInt(PART_SIZE)

/** Sums that are entered in one transaction: as many as the rows that are read for one can have. */
const MAX_SUMS = 2500

/** The row with the highest id in the table. */
export interface NewestRow {
  readonly id: unknown
  readonly requestId: unknown
  readonly startedAt: unknown
}

/**
 * What the rows beyond the sums add to them, gathered as they were written. So they need not be read again, which is
 * most of the cost of summing. If another process wrote rows meanwhile, they are read.
 */
export class UnsummedRows {
  #rows: {
    /** The id before the first. */
    readonly after: number
    /** The last, and its id. */
    last: number
    row: RowValues
    readonly contributions: Contributions
  } | null = null

  /**
   * Rows were written, by a transaction that has ended.
   * @param rows in the order of their ids, which have no gaps
   * @param last the id of the last
   */
  add(rows: readonly RowValues[], last: number): void {
    const row = rows.at(-1)
    if (row === undefined) return
    const after = last - rows.length
    if (this.#rows?.last !== after) this.#rows = { after, last, row, contributions: new Contributions() }
    const { contributions } = this.#rows
    for (const values of rows) contributions.add(countedRow(values), 1)
    this.#rows.last = last
    this.#rows.row = row
    // In pieces, then, which are read.
    if (contributions.size > MAX_SUMS) this.#rows = null
  }

  /**
   * Takes the rows out, to be summed or, should that fail, to be read.
   *
   * The last one still has the id with which it was written. So no row was written or replaced since, which takes a
   * higher id, and no id was given twice.
   * @param upTo the id up to which rows are in the sums
   * @returns null where they are not all that is beyond
   */
  take(upTo: unknown, newest: NewestRow): Contributions | null {
    const rows = this.#rows
    this.#rows = null
    if (rows === null) return null
    const { after, last, row, contributions } = rows
    const isSame = row[COLUMN_INDEX.request_id] === newest.requestId && row[COLUMN_INDEX.started_at] === newest.startedAt
    return isSame && after === upTo && last === newest.id ? contributions : null
  }
}

/** @param values of a row that was written */
function countedRow(values: RowValues): CountedRow {
  const cost = values[COLUMN_INDEX.cost_pico_usd] as bigint | null
  return toCountedRow(
    values, COLUMN_INDEX,
    cost === null ? null : Number(cost / COST_PART), cost === null ? null : Number(cost % COST_PART),
  )
}
