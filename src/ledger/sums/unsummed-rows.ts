import { COLUMNS, type RowValues } from '../columns.ts'
import { Contributions, PART_SIZE, toCountedRow, type CountedRow } from './contributions.ts'

type ColumnName = (typeof COLUMNS)[number]

const COLUMN_INDEX = Object.fromEntries(COLUMNS.map((name, at) => [name, at])) as Readonly<Record<ColumnName, number>>
const COST_PART = BigInt(PART_SIZE)

/** Maximum sums in one transaction: as many as its rows can have. */
const MAX_SUMS = 2500

/** The row with the highest id. */
interface NewestRow {
  readonly id: unknown
  readonly requestId: unknown
  readonly startedAt: unknown
}

/** Collects the sums of written rows, because reading rows again is most of the cost. If another process wrote, they are read. */
export class UnsummedRows {
  #rows: {
    /** The id before the first row. */
    readonly after: number
    /** Id and values of the last row. */
    last: number
    row: RowValues
    readonly contributions: Contributions
  } | null = null

  /** @param rows committed, by ascending id, without gaps @param last id of the last row */
  add(rows: readonly RowValues[], last: number): void {
    const row = rows.at(-1)
    if (row === undefined) return
    const after = last - rows.length
    if (this.#rows?.last !== after) this.#rows = { after, last, row, contributions: new Contributions() }
    const { contributions } = this.#rows
    for (const values of rows) contributions.add(countedRow(values), 1)
    this.#rows.last = last
    this.#rows.row = row
    // Too many for one transaction: the rows are read later, in pieces.
    if (contributions.size > MAX_SUMS) this.#rows = null
  }

  /**
   * Removes what was collected. If the last row is the newest of the table, no other was written: written and replaced rows get higher ids.
   * @param upTo the last summed id @returns null = other rows are unsummed too: read the rows
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
