import { COLUMNS } from '../columns.ts'
import type { RowValues } from '../columns.ts'
import { Contributions, PART_SIZE, toCountedRow } from './contributions.ts'
import type { CountedRow } from './contributions.ts'

type ColumnName = (typeof COLUMNS)[number]

const COLUMN_INDEX = Object.fromEntries(COLUMNS.map((name, at) => [name, at])) as Readonly<Record<ColumnName, number>>
const COST_PART = BigInt(PART_SIZE)

/** Maximum number of sums in one transaction: as many as the rows of one transaction can have. */
const MAX_SUMS = 2500

/** The row with the highest id. */
export interface NewestRow {
  readonly id: unknown
  readonly requestId: unknown
  readonly startedAt: unknown
}

/**
 * Collects what written rows add to the sums, so that summing need not read the rows again, which is most of its cost. If
 * another process wrote rows in between, the rows are read.
 */
export class UnsummedRows {
  #rows: {
    /** The id before the first row. */
    readonly after: number
    /** The id of the last row, and that row. */
    last: number
    row: RowValues
    readonly contributions: Contributions
  } | null = null

  /**
   * Rows were written in a committed transaction.
   * @param rows in the order of their ids, which have no gaps
   * @param last the id of the last row
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
    // Too many sums for one transaction: the rows are read later, in pieces.
    if (contributions.size > MAX_SUMS) this.#rows = null
  }

  /**
   * Removes the collected rows and returns what they add to the sums.
   *
   * It compares the last row with the newest row of the table: a written or replaced row has a higher id, so if they are
   * equal, no other row was written and no id was reused.
   * @param upTo the id up to which rows are in the sums
   * @returns null = other rows are unsummed too: read the rows instead
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
