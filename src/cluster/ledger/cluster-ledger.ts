import { withoutNul, type Database } from '../postgres/database.ts'
import { DatabaseError } from '../postgres/database-error.ts'
import { COLUMN_LIST, COLUMNS } from '../../ledger/columns.ts'
import { firstHourKept } from '../../ledger/sums/rollups.ts'
import type { StoredRow } from '../../ledger/stored-values.ts'

/** SQL types of the ledger's columns. A new column also needs a script in src/cluster/postgres/migrations.ts. */
const COLUMN_TYPES: Readonly<Record<(typeof COLUMNS)[number], 'text' | 'integer' | 'bigint' | 'double precision'>> = {
  request_id: 'text', started_at: 'bigint', first_byte_ms: 'double precision', duration_ms: 'double precision', key: 'text',
  protocol: 'text', endpoint: 'text', model: 'text', upstream: 'text', upstream_model: 'text', status: 'integer', end: 'text',
  error: 'text', source: 'text', input_tokens: 'bigint', cached_input_tokens: 'bigint', cache_write_5m_tokens: 'bigint',
  cache_write_1h_tokens: 'bigint', output_tokens: 'bigint', reasoning_tokens: 'bigint', input_audio_tokens: 'bigint',
  output_audio_tokens: 'bigint', input_image_tokens: 'bigint', output_image_tokens: 'bigint', seconds: 'double precision',
  characters: 'bigint', images: 'bigint', cost_pico_usd: 'bigint', price: 'text', price_version: 'text', attempts: 'text',
  bytes_in: 'bigint', bytes_out: 'bigint', route: 'text', trace_id: 'text', group: 'text', owner: 'text', upstream_protocol: 'text',
  user: 'text', tags: 'text', billed: 'text', queued_ms: 'double precision', policy: 'text',
}

const INPUT = COLUMNS.map(name => `"${name}" ${COLUMN_TYPES[name]}`).join(', ')
const row = (table: string) => `(${COLUMNS.map(name => `${table}."${name}"`).join(', ')})`

/**
 * Adds rows. An existing row changes only if its values differ, which happens if a process that was considered dead still writes the final
 * rows of its requests. A changed row gets a new id, so that readers who follow the ledger by id see it.
 */
const INSERT = `INSERT INTO gateway.requests AS kept (journal, ${COLUMN_LIST})
  SELECT $1, ${COLUMN_LIST} FROM json_to_recordset($2) AS given (${INPUT})
  ON CONFLICT (request_id, started_at, journal) DO UPDATE
    SET id = nextval('gateway.request_positions'), ${COLUMNS.map(name => `"${name}" = excluded."${name}"`).join(', ')}
    WHERE ${row('kept')} IS DISTINCT FROM ${row('excluded')}`

/** Milliseconds for a batch, which can wait for other gateways. */
const INSERT_TIMEOUT_MS = 30_000
/** Milliseconds that dropping a partition waits for readers. */
const LOCK_TIMEOUT_MS = 2_000
const MAINTENANCE_LOCK = 0x47574c4d
/** SQLSTATE check_violation: there is no partition for a row. */
const NO_PARTITION = '23514'
/** SQLSTATE classes of data exceptions and violated constraints, which mean that a row is invalid. */
const ROW_FAULT = /^2[23]/
/** Writes the ledger in PostgreSQL. */
export class ClusterLedger {
  readonly #database: Database
  readonly #partitions = new Set<string>()

  constructor(database: Database) {
    this.#database = database
  }

  /** @param id of the journal @param instance the gateway that writes the journal @returns the journal's number in PostgreSQL */
  async register(id: string, instance: string): Promise<number> {
    const [journal] = await this.#database.query(`INSERT INTO gateway.journals (id, instance) VALUES ($1, $2)
      ON CONFLICT (id) DO UPDATE SET instance = excluded.instance RETURNING journal`, [id, instance])
    return Number(journal?.['journal'])
  }

  /** @returns the id of the journal's last row that `gateway ledger copy` has sent */
  async copiedTo(journal: number): Promise<number> {
    const [found] = await this.#database.query('SELECT copied_to FROM gateway.journals WHERE journal = $1', [journal])
    return Number(found?.['copied_to'])
  }

  async markCopied(journal: number, id: number): Promise<void> {
    await this.#database.query('UPDATE gateway.journals SET copied_to = $2 WHERE journal = $1', [journal, id])
  }

  /**
   * Adds all valid rows. Rows that exist already and have not changed have no effect.
   * @returns the rows that PostgreSQL refused as invalid @throws {DatabaseError}
   */
  async insert(journal: number, rows: readonly StoredRow[]): Promise<readonly StoredRow[]> {
    try {
      await this.#insertAll(journal, rows)
      return []
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
      if (!ROW_FAULT.test(error.sqlState ?? '')) throw error
      if (rows.length === 1) return rows
      const half = Math.ceil(rows.length / 2)
      return [...await this.insert(journal, rows.slice(0, half)), ...await this.insert(journal, rows.slice(half))]
    }
  }

  /**
   * Drops the rows of old months and old sums by hour. Does nothing while another gateway does the same.
   * @param keep ms that rows are kept; null = forever @param now ms since 1970 @returns the number of dropped months
   */
  async expire(keep: number | null, now: number): Promise<number> {
    return this.#database.transaction(async query => {
      const [lock] = await query('SELECT pg_try_advisory_xact_lock($1) AS mine', [MAINTENANCE_LOCK])
      if (lock?.['mine'] !== true) return 0
      await query('SELECT gateway.expire_hours($1)', [firstHourKept(now)], INSERT_TIMEOUT_MS)
      if (keep === null) return 0
      await query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`)
      const [found] = await query('SELECT gateway.drop_partitions($1) AS dropped', [now - keep], INSERT_TIMEOUT_MS)
      return Number(found?.['dropped'])
    })
  }

  async #insertAll(journal: number, rows: readonly StoredRow[]): Promise<void> {
    const text = JSON.stringify(rows)
    const safe = text.includes('\\u0000') ? JSON.stringify(rows, (_, value) => withoutNul(value)) : text
    const add = () => this.#database.query(INSERT, [journal, safe], INSERT_TIMEOUT_MS)
    await this.#addPartitions(rows)
    try {
      await add()
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.sqlState !== NO_PARTITION) throw error
      // Another gateway has dropped a partition that this process had created: create it again.
      this.#partitions.clear()
      await this.#addPartitions(rows)
      await add()
    }
  }

  async #addPartitions(rows: readonly StoredRow[]): Promise<void> {
    const months = new Set(rows.map(({ started_at: at }) => `${new Date(Number(at)).toISOString().slice(0, 7)}-01`))
    for (const month of months) {
      if (this.#partitions.has(month)) continue
      await this.#database.query('SELECT gateway.add_partition($1)', [month], INSERT_TIMEOUT_MS)
      this.#partitions.add(month)
    }
  }
}
