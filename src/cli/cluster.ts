import { Command } from 'commander'
import { messageOf } from '../base/message-of.ts'
import { formatNumber, table } from '../base/text-table.ts'
import type { ClusterConfig, ValkeyAddress } from '../config/cluster-types.ts'
import { MAX_CLOCK_DIFFERENCE_MS } from '../cluster/heartbeat.ts'
import { Database, type Row } from '../cluster/postgres/database.ts'
import { DatabaseError } from '../cluster/postgres/database-error.ts'
import { Valkey } from '../cluster/valkey/valkey.ts'
import { configOption } from './common/config-option.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { loadForLedger } from './common/problems.ts'

/** Maximum ms for a response of a service, including the time to connect. */
const TIMEOUT_MS = 3_000
/** Seconds without a heartbeat after which a gateway counts as dead. Gateways send one every 5 seconds. */
const DEAD_AFTER_S = 20

interface Instance {
  readonly name: string
  readonly version: string
  /** Start of the gateway, in ISO 8601, by the clock of PostgreSQL. */
  readonly since: string
  readonly last_heartbeat: string
  readonly alive: boolean
  readonly requests_in_flight: number
  readonly outbox_rows: number
  /** The time of the gateway's clock minus the time of PostgreSQL's clock. */
  readonly clock_difference_ms: number
}

interface ServiceState {
  readonly reachable: boolean
  /** true if the service accepted a write. A demoted server refuses writes. */
  readonly writable: boolean
  readonly latency_ms: number | null
  readonly error: string | null
}

interface ClusterState {
  readonly instances: readonly Instance[]
  /** State of Valkey; null = not configured. */
  readonly valkey: ServiceState | null
  readonly postgres: ServiceState | null
}

export function clusterCommand(): Command {
  return new Command('cluster')
    .description('Show the gateways that share Valkey and PostgreSQL.')
    .addHelpText('after', `\nExamples:\n  gateway cluster status\n${EXIT_CODES}`)
    .addCommand(new Command('status')
      .description('Show each gateway, Valkey, PostgreSQL, and differences between clocks.')
      .addOption(configOption('the configuration, which names both services'))
      .option('--json', 'JSON')
      .addHelpText('after', `
A gateway reports to PostgreSQL every 5 seconds. Gateways that did not for 20 seconds are shown as
gone, for a day. Valkey and PostgreSQL are asked to take a write. Ends with 1 where one does not answer
or takes none.

Examples:
  gateway cluster status
  gateway cluster status --json | jq '.instances[] | select(.alive | not)'
${EXIT_CODES}`)
      .action(status))
}

async function status({ config: file, json }: { readonly config: string, readonly json?: true }, command: Command): Promise<void> {
  const { cluster } = loadForLedger(file, command).config
  if (cluster === null) command.error(`error: ${file} has no cluster: { valkey: ..., postgres: ... }`, { exitCode: EXIT.usage })
  const [valkey, { postgres, instances }] = await Promise.all([valkeyState(cluster), postgresState(cluster)])
  const state: ClusterState = { instances, valkey, postgres }
  process.stdout.write(json === true ? `${JSON.stringify(state)}\n` : textOf(state))
  const services = [['Valkey', valkey], ['PostgreSQL', postgres]] as const
  const failures = services.flatMap(([name, service]) => (
    service === null || service.writable ? [] : [`${name} ${service.reachable ? 'takes no writes' : 'cannot be reached'}`]))
  if (failures.length > 0) command.error(`error: ${failures.join(', ')}`, { exitCode: EXIT.failed })
}

async function valkeyState({ valkey }: ClusterConfig): Promise<ServiceState | null> {
  if (valkey === null) return null
  return stateOf(() => askValkey(valkey))
}

const WRITE_SCRIPT = `return redis.call('SET', KEYS[1], ARGV[1], 'PX', 1000)`

async function askValkey(address: ValkeyAddress): Promise<ServiceReply> {
  const valkey = new Valkey(address, WRITE_SCRIPT, TIMEOUT_MS)
  try {
    // The first ping also connects, so only the second ping is measured.
    await valkey.ping()
    const latency = await valkey.ping()
    return { latency, refusal: await valkey.run(['gateway:status'], '1').then(() => null, messageOf) }
  } finally {
    await valkey.close()
  }
}

async function postgresState({ postgres: url }: ClusterConfig): Promise<{ postgres: ServiceState | null, instances: Instance[] }> {
  if (url === null) return { postgres: null, instances: [] }
  const database = new Database({ url, name: 'gateway cluster status' })
  let instances: Instance[] = []
  try {
    const postgres = await stateOf(async () => {
      await database.query('SELECT 1', [], TIMEOUT_MS)
      const started = performance.now()
      await database.query('SELECT 1', [], TIMEOUT_MS)
      const latency = performance.now() - started
      instances = (await instanceRows(database)).map(toInstance)
      return { latency, refusal: await writeRefusal(database) }
    })
    return { postgres, instances }
  } finally {
    database.close()
  }
}

interface ServiceReply {
  readonly latency: number
  /** Why the service refuses writes; null = it accepts writes. */
  readonly refusal: string | null
}

async function stateOf(ask: () => Promise<ServiceReply>): Promise<ServiceState> {
  try {
    const { latency, refusal } = await ask()
    return { reachable: true, writable: refusal === null, latency_ms: Math.round(latency * 100) / 100, error: refusal }
  } catch (error) {
    return { reachable: false, writable: false, latency_ms: null, error: messageOf(error) }
  }
}

/** Tests with a statement that changes nothing: a server that accepts no writes refuses even such a statement. */
async function writeRefusal(database: Database): Promise<string | null> {
  try {
    await database.query('UPDATE gateway.instances SET name = name WHERE FALSE', [], TIMEOUT_MS)
    return null
  } catch (error) {
    if (isWithoutSchema(error)) return null
    return messageOf(error)
  }
}

async function instanceRows(database: Database): Promise<Row[]> {
  try {
    return await database.query(`SELECT name, max(version) AS version, min(started_at) AS since, max(seen_at) AS seen,
        max(seen_at) > now() - interval '${DEAD_AFTER_S} s' AS alive, sum(requests_in_flight)::float8 AS in_flight,
        max(outbox_rows)::float8 AS outbox,
        (array_agg(clock_difference_ms ORDER BY abs(clock_difference_ms) DESC))[1] AS difference
      FROM (SELECT *, max(seen_at) OVER (PARTITION BY name) AS latest FROM gateway.instances) AS known
      WHERE seen_at > latest - interval '${DEAD_AFTER_S} s' GROUP BY name ORDER BY name`, [], TIMEOUT_MS)
  } catch (error) {
    if (isWithoutSchema(error)) return []
    throw error
  }
}

/** Tells whether the table does not exist yet, because no gateway has created it (undefined_table, invalid_schema_name). */
function isWithoutSchema(error: unknown): boolean {
  return error instanceof DatabaseError && ['42P01', '3F000'].includes(error.sqlState ?? '')
}

function toInstance({ name, version, since, seen, alive, in_flight: inFlight, outbox, difference }: Row): Instance {
  return {
    name: String(name), version: String(version), since: (since as Date).toISOString(), last_heartbeat: (seen as Date).toISOString(),
    alive: alive === true, requests_in_flight: Number(inFlight), outbox_rows: Number(outbox),
    clock_difference_ms: Math.round(Number(difference)),
  }
}

function textOf({ instances, valkey, postgres }: ClusterState): string {
  const lines = instances.length === 0 ? 'No gateways.\n' : table<Instance>([
    { title: 'NAME', text: each => each.name },
    { title: 'VERSION', text: each => each.version },
    { title: 'STATE', text: each => (each.alive ? 'alive' : 'gone') },
    { title: 'SINCE', text: each => each.since },
    { title: 'LAST HEARTBEAT', text: each => each.last_heartbeat },
    { title: 'IN FLIGHT', text: each => formatNumber(each.requests_in_flight), right: true },
    { title: 'OUTBOX', text: each => formatNumber(each.outbox_rows), right: true },
    { title: 'CLOCK', text: each => `${each.clock_difference_ms} ms`, right: true },
  ], instances)
  const apart = instances.filter(({ clock_difference_ms: ms }) => Math.abs(ms) > MAX_CLOCK_DIFFERENCE_MS)
  const warnings = apart.map(({ name, clock_difference_ms: ms }) =>
    `warning: the clocks of ${name} and PostgreSQL differ by ${ms} ms: budgets of days and months begin at different times\n`)
  return `${lines}\nValkey: ${serviceText(valkey)}\nPostgreSQL: ${serviceText(postgres)}\n${warnings.join('')}`
}

function serviceText(state: ServiceState | null): string {
  if (state === null) return 'not configured'
  if (!state.reachable) return `not reachable: ${state.error}`
  return `reachable, ${state.latency_ms} ms${state.writable ? '' : `, takes no writes: ${state.error}`}`
}
