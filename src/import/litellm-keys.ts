import { parse } from 'csv-parse/sync'
import type { Note } from './litellm-notes.ts'
import { toReference } from './litellm-references.ts'
import { ImportError } from './source.ts'

/** A key as an object of gateway.yaml. */
export interface ImportedKey {
  readonly name: string
  readonly sha256: string
  readonly owner?: string
  readonly expires?: string
  readonly models?: readonly string[]
  readonly limits?: Readonly<Record<string, unknown>>
}

export interface VirtualKeys {
  readonly list: readonly ImportedKey[]
  /** What is different or missing in the result, by line of the table. */
  readonly notes: readonly Note[]
}

/** The name of the key that is imported from LiteLLM's master key. */
export const MASTER_KEY = 'master'

type Row = Readonly<Record<string, string>>

const DIGEST = /^[\da-f]{64}$/i
/** LiteLLM's names of lists of models. They do not name a model. */
const MODEL_GROUPS: ReadonlySet<string> = new Set(['all-proxy-models', 'all-team-models', 'no-default-models'])
const LIMITS = [
  ['rpm_limit', 'requests_per_minute'], ['tpm_limit', 'tokens_per_minute'], ['max_parallel_requests', 'concurrent'],
] as const
/** Limits that refuse every request if they are 0. */
const NONE = ['max_budget', ...LIMITS.map(([column]) => column)]
/** The team of logins to LiteLLM's own dashboard. */
const DASHBOARD = 'litellm-dashboard'
/** LiteLLM's durations of budgets that have an equivalent period in the gateway. */
const PERIODS: ReadonlyMap<string, string> = new Map(Object.entries({ '': 'total', '1d': 'day', '24h': 'day', '30d': 'month', '1mo': 'month' }))

/**
 * Reads the virtual keys of a LiteLLM proxy: the table LiteLLM_VerificationToken as CSV with a header. Clients keep their keys, because the
 * table has the SHA-256 of each key in hexadecimal (`hash_token` in litellm/proxy/_types.py), and gateway.yaml has the same.
 *
 * @throws ImportError if the text is not this table
 */
export function readVirtualKeys(csv: string): VirtualKeys {
  const names = new Set([MASTER_KEY])
  const list: ImportedKey[] = []
  const notes: Note[] = []
  for (const { row, line } of rowsOf(csv)) {
    const note = (column: string, text: string): void => void notes.push({ place: `${line}:1`, setting: column, text })
    const { token = '', blocked = '' } = row
    if (!DIGEST.test(token)) {
      note('token', 'this is no SHA-256 of a key: the row is left out')
    } else if (isTrue(blocked) || NONE.some(column => numberOf(row[column]) === 0)) {
      note('blocked', `the key ${nameOf(row)} is blocked or has a limit of 0: it is left out`)
    } else if (row['team_id'] !== DASHBOARD) {
      list.push(keyOf(row, uniqueName(nameOf(row), names), note))
    }
  }
  return { list, notes }
}

function rowsOf(csv: string): { readonly row: Row, readonly line: number }[] {
  try {
    const records = parse(csv, { bom: true, columns: true, info: true, skip_empty_lines: true, max_record_size: 1_000_000 })
    const rows = (records as unknown as { record: Row, info: { lines: number } }[]).map(({ record: row, info: { lines: line } }) => ({ row, line }))
    if (rows.length === 0) throw new ImportError('it has no row')
    if (rows.some(({ row }) => row['token'] === undefined)) throw new ImportError('it has no column "token"')
    return rows
  } catch (error) {
    if (error instanceof ImportError) throw error
    throw new ImportError((error as Error).message)
  }
}

function keyOf(row: Row, name: string, note: (column: string, text: string) => void): ImportedKey {
  const models = listOf(row['models']).filter(model => !MODEL_GROUPS.has(model))
  const limits: Record<string, unknown> = {}
  for (const [column, limit] of LIMITS) {
    const value = numberOf(row[column])
    if (value !== null) limits[limit] = Math.max(1, Math.floor(value))
  }
  const usd = numberOf(row['max_budget'])
  const duration = row['budget_duration'] ?? ''
  if (usd !== null) {
    const per = PERIODS.get(duration)
    if (per === undefined) note('budget_duration', `there is no budget of ${duration} (${name}): it is set for a month`)
    limits['budget'] = { usd, per: per ?? 'month' }
  }
  if (row['team_id']) note('team_id', `${name} is a key of the team ${row['team_id']}: put it into a group (keys[].group)`)
  if (filled(row['model_max_budget'])) note('model_max_budget', `budgets by model are under limits.models of the key (${name})`)
  const expires = instantOf(row['expires'])
  return {
    name,
    sha256: row['token']!.toLowerCase(),
    ...row['user_id'] && { owner: labelOf(row['user_id']) },
    ...expires !== null && { expires },
    ...models.length > 0 && { models },
    ...Object.keys(limits).length > 0 && { limits },
  }
}

/** The name of a key: its alias, or the part of the key that LiteLLM shows, such as `sk-...wxyz`. */
function nameOf(row: Row): string {
  return labelOf(row['key_alias'] || row['key_name'] || `litellm-${(row['token'] ?? '').slice(0, 8)}`)
}

/** Converts a text to a name that gateway.yaml accepts. */
function labelOf(text: string): string {
  return toReference(text.replace(/\p{Cc}/gu, ' ').trim().slice(0, 128))
}

function uniqueName(wanted: string, names: Set<string>): string {
  let name = wanted
  for (let number = 2; names.has(name); number++) name = `${wanted}-${number}`
  names.add(name)
  return name
}

/** Reads an array in the notation of PostgreSQL (`{a,"b c"}`) or of JSON. */
function listOf(text = ''): string[] {
  const inner = /^[{[](.*)[}\]]$/s.exec(text.trim())?.[1] ?? ''
  if (inner === '') return []
  const [fields = []] = parse(inner, { escape: '\\', trim: true }) as string[][]
  return fields.filter(field => field !== '')
}

/** Reads a time. PostgreSQL writes it without a zone, and LiteLLM stores UTC. */
function instantOf(text = ''): string | null {
  if (text === '') return null
  const time = Date.parse(/[zZ]|[+-]\d\d(?::?\d\d)?$/.test(text) ? text : `${text.replace(' ', 'T')}Z`)
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}

function numberOf(text = ''): number | null {
  const number = Number(text)
  return text.trim() !== '' && Number.isFinite(number) && number >= 0 ? number : null
}

function isTrue(text: string): boolean {
  return /^(?:t|true|1)$/i.test(text)
}

function filled(text = ''): boolean {
  return !['', '{}', 'null'].includes(text.trim())
}
