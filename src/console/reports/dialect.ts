import { UNUSUAL } from '../../ledger/file/ledger-schema.ts'
import { postgresTag, sqliteTag } from '../../ledger/tags.ts'

/** The differences between the SQL of SQLite and of PostgreSQL. A "name" is the name of a key, a model or an upstream. */
export interface Dialect {
  /** A condition: the column of rows or sums contains no name. */
  isUnnamed(column: string): string
  isNamed(column: string): string
  /** An expression for the name in a column of rows, in the form in which the tables of sums store names. */
  rowName(column: string): string
  greater(a: string, b: string): string
  /** A query that lists the texts of a JSON list. */
  readonly listed: string
  /** The operator that compares a text with a pattern and ignores case. */
  readonly like: 'LIKE' | 'ILIKE'
  /** An expression for the length of a JSON list in a column; null = the list is unreadable. */
  listLength(column: string): string
  /** A table of the objects of a JSON list in a column. Its column is `value`. */
  listItems(column: string): string
  /** The value of a tag as JSON text. @param name valid in SQL */
  tag(name: string): string
  /** Whether a text column contains the text of a `?`. */
  contains(column: string): string
  /** Reads the table in the order of ids, without the index on time. */
  readonly byPosition: string
  byIndex(name: 'requests_by_time' | 'requests_unusual'): string
  /** The condition of the index on unusual requests. */
  readonly unusual: string
  /** The table of times to the first byte. Its column `counts` is JSON. */
  firstBytes(slot: 'hour' | 'day'): string
}

/** SQLite's tables of sums store 0 if there is no name. */
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
