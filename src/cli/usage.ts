import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Command, InvalidArgumentError, Option } from 'commander'
import { keyFileOf } from '../auth/key-file.ts'
import { ownersOf, type KeyOwners } from '../auth/key-owners.ts'
import { didYouMean } from '../config/nearest.ts'
import type { Config } from '../config/types.ts'
import { parseDuration } from '../config/units.ts'
import { clusterFailure, openClusterReader } from '../cluster/ledger/cluster-reader.ts'
import { csvHeader, csvLine, jsonLine, ROW_FIELDS, sumFields, type Field } from '../ledger/read/export-fields.ts'
import { openReader } from '../ledger/read/file-reader.ts'
import { StoreError } from '../base/files/store-error.ts'
import type { Filter, LedgerReader } from '../ledger/read/ledger-reader.ts'
import { sumsWithOwners } from '../ledger/read/owner-sums.ts'
import { isTagName } from '../ledger/tags.ts'
import { requestReport } from '../ledger/request-report.ts'
import { GROUPINGS, tagOf, type GroupBy } from '../ledger/read/usage-sum.ts'
import { BlockingDatabase } from '../cluster/postgres/blocking-database.ts'
import { explainCost } from '../pricing/cost.ts'
import { configOption } from './common/config-option.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { exitOnStoreError, storedKeys } from './common/key-store-command.ts'
import { loadForLedger } from './common/problems.ts'
import { rowTable, sumTable } from './usage-tables.ts'

interface UsageEnvironment {
  readonly stdout: Writable
  /** The current time, in ms since 1970. */
  readonly now: () => number
}

interface Options {
  readonly config: string
  readonly since?: number
  readonly until?: number
  readonly key?: string
  readonly model?: string
  readonly upstream?: string
  readonly where?: Where
  readonly by?: readonly GroupBy[]
  readonly json?: true
  readonly csv?: true
  readonly limit?: number
  readonly request?: string
}

type Where = Pick<Filter, 'user' | 'tags'>

const TABLE_ROWS = 50
const MAX_GROUPINGS = 3

/** Exit code 2 means a wrong option or configuration. Exit code 1 means that the ledger cannot be read, or does not contain the request. */
export function usageCommand(environment: UsageEnvironment = processEnvironment()): Command {
  const moment = (text: string) => parseMoment(text, environment.now())
  return new Command('usage')
    .description('Show usage and cost from the ledger; with cluster.postgres, of all gateways.')
    .addOption(configOption('the configuration, which names the ledger'))
    .option('--since <when>', 'requests that started at this time or later', moment)
    .option('--until <when>', 'requests that started before this time', moment)
    .option('--key <name>', "requests of this key, or of keys that match a glob such as 'team-*'")
    .option('--model <name>', 'requests for this model (the name that the client uses), or a glob')
    .option('--upstream <name>', 'requests whose last attempt went to this upstream, or a glob')
    .option(
      '--where <condition>', "requests of a user or with a tag: user=u123, tag:project=alpha, or a glob such as 'tag:project=al*'; repeatable", parseWhere,
    )
    .option(
      '--by <groups>', `one sum for each group: up to ${MAX_GROUPINGS} of ${GROUPINGS.join(', ')} and tag:NAME, separated by commas`,
      parseGroupings,
    )
    .addOption(new Option('--json', 'JSON, one object a line').conflicts('csv'))
    .option('--csv', 'CSV with a header line (RFC 4180)')
    .addOption(new Option('--limit <n>', `the last n requests; default for tables: ${TABLE_ROWS}`)
      .argParser(parseLimit).conflicts('by'))
    .addOption(new Option('--request <id>', 'all details of one request')
      .conflicts(['since', 'until', 'key', 'model', 'upstream', 'where', 'by', 'csv', 'limit']))
    .addHelpText('after', HELP)
    .action(async (options: Options, command: Command) => {
      const { config, file } = ledgerOf(options.config, command)
      const { cluster } = config
      const owners = options.by?.includes('owner') === true ? await ownersIn(config, file, command) : new Map()
      try {
        using reader = (cluster && openCluster(cluster, file, command)) ?? openReader(file)
        await print(queryOutput(reader, options, owners, command), environment.stdout)
      } catch (error) {
        const why = clusterFailure(error)
        if (why !== null) command.error(`error: cannot read the ledger in PostgreSQL: ${why}`, { exitCode: EXIT.failed })
        if (!(error instanceof StoreError) && !isSqliteError(error)) throw error
        command.error(`error: cannot read the ledger ${file}: ${error.message}`, { exitCode: EXIT.failed })
      }
    })
}

const HELP = `
A time is a date (2026-11-21, midnight UTC), a date and time (2026-11-21T09:30Z, default UTC), or
an age: 90m, 24h, 7d. Days are UTC.

Running requests are shown by --request only. input_tokens is all input, with cached reads and
cache writes; output_tokens is all output, with reasoning. An unknown cost is null in JSON, empty in
CSV and "unknown" in tables, never 0. unpriced_requests counts the requests whose cost is unknown:
the cost beside it is that of the others. Sums of whole days stay when ledger.keep deletes the requests;
sums by hour or minute, of parts of a day, and by user or tag do not. Groups by owner are the keys that the owner has now, as in the
console's billing; the owner of a single request is the one of that time.

Examples:
  gateway usage --since 24h
  gateway usage --since 2026-11-01 --until 2026-12-01 --by key
  gateway usage --since 7d --by key,model
  gateway usage --since 2h --by status,minute
  gateway usage --since 30d --where tag:project=alpha --by model
  gateway usage --since 30d --by tag:project,user
  gateway usage --key team-a --by day --csv > team-a.csv
  gateway usage --since 7d --json | jq 'select(.end != "complete")'
  gateway usage --request 01980c5e-7a80-7000-8000-000000000000
${EXIT_CODES}`

function processEnvironment(): UsageEnvironment {
  return { stdout: process.stdout, now: () => Date.now() }
}

function ledgerOf(from: string, command: Command): { config: Config, file: string } {
  const { config } = loadForLedger(from, command)
  if (config.ledger !== null) return { config, file: config.ledger.file }
  return command.error(`error: ${from} has no ledger: { file: ... }`, { exitCode: EXIT.usage })
}

async function ownersIn(config: Config, ledger: string, command: Command): Promise<KeyOwners> {
  const file = keyFileOf(ledger)
  const { keys } = await exitOnStoreError(file, command, () => storedKeys(config, file))
  return ownersOf(config.keys, keys)
}

/** @returns null = there is no cluster, or PostgreSQL does not respond, which a warning reports */
function openCluster({ postgres }: NonNullable<Config['cluster']>, file: string, command: Command): LedgerReader | null {
  if (postgres === null) return null
  const database = new BlockingDatabase({ url: postgres, name: 'gateway usage' })
  const local = openIfThere(file)
  try {
    return openClusterReader(database, local)
  } catch (error) {
    database.close()
    local?.[Symbol.dispose]()
    const why = clusterFailure(error)
    if (why === null) throw error
    command.configureOutput().writeErr?.(`warning: the ledger in PostgreSQL cannot be read (${why}): ` +
      `these are the requests of this gateway only, from ${file}\n`)
    return null
  }
}

/** Opens the local ledger; null = there is none, because the operator's machine may run no gateway. */
function openIfThere(file: string): LedgerReader | null {
  try {
    return openReader(file)
  } catch (error) {
    if (error instanceof StoreError) return null
    throw error
  }
}

function queryOutput(reader: LedgerReader, options: Options, owners: KeyOwners, command: Command): Iterable<string> {
  const { request, since, until, by, limit } = options
  if (request !== undefined) return requestOutput(reader, request, options.json === true, command)
  if (since !== undefined && until !== undefined && since >= until) {
    command.error('error: --since must be before --until', { exitCode: EXIT.usage })
  }
  const filter: Filter = { ...options, ...options.where }
  if (by !== undefined) {
    const sums = sumsWithOwners(reader, filter, by, owners)
    return records(sumFields(by), sums, options) ?? [sumTable(by, sums, reader.sums(filter, [])[0])]
  }
  const rows = limit === undefined ? reader.rows(filter) : reader.latest(filter, limit)
  return records(ROW_FIELDS, rows, options)
    ?? [rowTable(reader.latest(filter, limit ?? TABLE_ROWS), reader.sums(filter, [])[0])]
}

function records<T>(fields: readonly Field<T>[], items: Iterable<T>, options: Options): Iterable<string> | null {
  if (options.json === true) return mapTexts(items, item => jsonLine(fields, item))
  return options.csv === true ? csv(fields, items) : null
}

function* csv<T>(fields: readonly Field<T>[], items: Iterable<T>): Generator<string> {
  yield csvHeader(fields)
  yield* mapTexts(items, item => csvLine(fields, item))
}

function* mapTexts<T>(items: Iterable<T>, text: (item: T) => string): Generator<string> {
  for (const item of items) yield text(item)
}

function requestOutput(reader: LedgerReader, id: string, json: boolean, command: Command): string[] {
  const found = reader.find(id)
  if (found.length === 0) command.error(`error: the ledger has no request '${id}'`, { exitCode: EXIT.failed })
  return json
    ? found.filter(({ running }) => !running).map(({ row }) => jsonLine(ROW_FIELDS, row))
    : [found.map(({ row, running }) => requestReport(row, running, explainCost(row.usage, row.price))).join('\n')]
}

/** Prints the texts. It is no error if a reader closes early (`| head`). */
async function print(texts: Iterable<string>, stdout: Writable): Promise<void> {
  try {
    await pipeline(Readable.from(chunks(texts)), stdout, { end: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}

function* chunks(texts: Iterable<string>): Generator<string> {
  let chunk = ''
  for (const text of texts) {
    chunk += text
    if (chunk.length < 65_536) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}

function parseGroupings(text: string): readonly GroupBy[] {
  const names = text.split(',').map(name => name.trim())
  if (names.length > MAX_GROUPINGS) throw new InvalidArgumentError(`There are at most ${MAX_GROUPINGS} groups.`)
  for (const [n, name] of names.entries()) {
    const tag = tagOf(name as GroupBy)
    if (tag !== null && !isTagName(tag)) throw new InvalidArgumentError(NO_TAG_NAME)
    if (tag === null && !GROUPINGS.some(known => known === name)) {
      const known = `there is ${GROUPINGS.join(', ')} and tag:NAME`
      throw new InvalidArgumentError(`There is no group "${name}"${didYouMean(name, GROUPINGS)}; ${known}.`)
    }
    if (names.indexOf(name) < n) throw new InvalidArgumentError(`${name} is given twice.`)
  }
  return names as GroupBy[]
}

const NO_TAG_NAME = 'The name of a tag has lower-case letters, digits, _ and -.'

function parseWhere(text: string, before: Where = {}): Where {
  const [, field = '', value = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? []
  const tag = field.startsWith('tag:') ? field.slice('tag:'.length) : null
  if (field === '' || (tag === null && field !== 'user')) {
    throw new InvalidArgumentError('It is user=NAME or tag:NAME=VALUE; keys, models and upstreams have options of their own.')
  }
  if (tag === null) return { ...before, user: value }
  if (!isTagName(tag)) throw new InvalidArgumentError(NO_TAG_NAME)
  return { ...before, tags: { ...before.tags, [tag]: value } }
}

function parseLimit(text: string): number {
  const limit = Number(text)
  if (!/^\d+$/.test(text) || limit < 1 || limit > 1_000_000) throw new InvalidArgumentError('It is a whole number from 1 to 1000000.')
  return limit
}

/** @param text a date, a date and time, or a duration before now @returns ms since 1970 */
function parseMoment(text: string, now: number): number {
  const [, date, time = '00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/i.exec(text) ?? []
  if (date === undefined) return now - durationOf(text)
  const midnight = Date.parse(`${date}T00:00Z`)
  const moment = Date.parse(`${date}T${time}${zone.toUpperCase()}`)
  // Date.parse reads February 30 as March 2: refuse it.
  if (Number.isNaN(moment) || new Date(midnight).toISOString().slice(0, 10) !== date) {
    throw new InvalidArgumentError('There is no such date or time.')
  }
  return moment
}

function durationOf(text: string): number {
  try {
    return parseDuration(text)
  } catch {
    throw new InvalidArgumentError('It is a date (2026-11-21), a date and time (2026-11-21T09:30Z) ' +
      'or how long ago (24h, 7d).')
  }
}

function isSqliteError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR'
}
