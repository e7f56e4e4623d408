import { UNUSUAL } from '../../ledger/file/ledger-schema.ts'
import { postgresTag, sqliteTag } from '../../ledger/tags.ts'

/** Differences between the SQL of SQLite and PostgreSQL. A name is a key, a model or an upstream. */
export interface Dialect {
  /** Whether a column of rows or sums has no name. */
  isUnnamed(column: string): string
  isNamed(column: string): string
  /** The name in a column of rows, as the tables of sums store names. */
  rowName(column: string): string
  greater(a: string, b: string): string
  /** A query for the texts of a JSON list. */
  readonly listed: string
  /** Ignores case. */
  readonly like: 'LIKE' | 'ILIKE'
  /** Length of a JSON list in a column; null = unreadable. */
  listLength(column: string): string
  /** Objects of a JSON list in a column, as a table with the column `value`. */
  listItems(column: string): string
  /** The value of a tag as JSON text. @param name valid in SQL */
  tag(name: string): string
  /** Whether a text column contains the text of a `?`. */
  contains(column: string): string
  /** Reads the table in the order of ids, without the index on time. */
  readonly byPosition: string
  byIndex(name: 'requests_by_time' | 'requests_unusual'): string
  /** Condition of the index on unusual requests. */
  readonly unusual: string
  /** Table of times to the first byte, with `counts` as JSON. */
  firstBytes(slot: 'hour' | 'day'): string
}

/** The tables of sums store 0 for no name. */
export const SQLITE: Dialect = {
  isUnnamed: column => `typeof(${column}) <> 'text'`,
  isNamed: column => `typeof(${column}) = 'text'`,
  rowName: column => `coalesce(${column}, 0)`,
  greater: (a, b) => `max(${a}, ${b})`,
  listed: 'SELECT value FROM json_each(?)',
  like: 'LIKE',
  listLength: column => `CASE WHEN json_valid(${column}) THEN json_array_length(${column}) END`,
  listItems: column => `(SELECT CASE type WHEN 'object' THEN value END AS value FROM json_each(CASE WHEN json_valid(${column}) THEN ${column} END))`,
  tag: sqliteTag,
  contains: column => `instr(${column}, ?) > 0`,
  byPosition: 'NOT INDEXED',
  byIndex: name => `INDEXED BY ${name}`,
  unusual: UNUSUAL,
  firstBytes: slot => `first_byte_${slot}s`,
}

export const POSTGRES: Dialect = {
  isUnnamed: column => `${column} IS NULL`,
  isNamed: column => `${column} IS NOT NULL`,
  rowName: column => column,
  greater: (a, b) => `greatest(${a}, ${b})`,
  listed: 'SELECT json_array_elements_text(?)',
  like: 'ILIKE',
  listLength: column => `json_array_length(gateway.json_list(${column}))`,
  listItems: column => `json_array_elements(gateway.json_list(${column}))`,
  tag: postgresTag,
  contains: column => `strpos(${column}, ?) > 0`,
  byPosition: '',
  byIndex: () => '',
  unusual: `(status IS DISTINCT FROM 200 OR "end" <> 'complete')`,
  firstBytes: slot => `(SELECT scope, name, ${slot}, json_object_agg(bucket, times)::text AS counts
    FROM first_byte_${slot}_buckets GROUP BY scope, name, ${slot}) AS first_bytes`,
}
