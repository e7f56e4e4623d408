import { COLUMNS, type RowValues } from '../columns.ts'
import { Contributions, PART_SIZE, toCountedRow, type CountedRow } from './contributions.ts'

type ColumnName = (typeof COLUMNS)[number]

const COLUMN_INDEX = Object.fromEntries(COLUMNS.map((name, at) => [name, at])) as Readonly<Record<ColumnName, number>>
const COST_PART = BigInt(PART_SIZE)

/** Maximum sums in one transaction, equal to the maximum rows in one transaction. */
const MAX_SUMS = 2500

/** The row with the highest id in the table. */
interface NewestRow {
  readonly id: unknown
  readonly requestId: unknown
  readonly startedAt: unknown
}

/** Collects the sums of rows as they are written, because reading rows again is slow. If another process writes too, rows are read. */
export class UnsummedRows {
  #rows: {
    /** The id of the row before the first collected row. */
    readonly after: number
    /** Id of the last collected row; `row` has its values. */
    last: number
    row: RowValues
    readonly contributions: Contributions
  } | null = null

  /** @param rows committed rows by ascending id, without gaps @param last id of the last row */
  add(rows: readonly RowValues[], last: number): void {
    const row = rows.at(-1)
    if (row === undefined) return
    const after = last - rows.length
    if (this.#rows?.last !== after) this.#rows = { after, last, row, contributions: new Contributions() }
    const { contributions } = this.#rows
    for (const values of rows) contributions.add(countedRow(values), 1)
    this.#rows.last = last
    this.#rows.row = row
    // Collect no more than one transaction can write: the rows are then read from the table later, in pieces.
    if (contributions.size > MAX_SUMS) this.#rows = null
  }

  /**
   * Takes the collected sums. They are complete if the last collected row is the newest in the table, because written and replaced rows get
   * higher ids. @param upTo id of the last summed row @returns null = there are other unsummed rows, so read the rows from the table
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

function countedRow(values: RowValues): CountedRow {
  const cost = values[COLUMN_INDEX.cost_pico_usd] as bigint | null
  return toCountedRow(
    values, COLUMN_INDEX,
    cost === null ? null : Number(cost / COST_PART), cost === null ? null : Number(cost % COST_PART),
  )
}
