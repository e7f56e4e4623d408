import { Command } from 'commander'
import { escapeControlCharacters, formatNumber, table } from '../base/text-table.ts'
import type { CircuitStatus, ProcessStatus, StoreStatus } from '../gateway/control.ts'
import { askGateway } from './common/ask-gateway.ts'
import { configOption } from './common/config-option.ts'
import { EXIT_CODES } from '../process/exit.ts'
import { requireReady } from './require-ready.ts'

/** The state of a gateway, merged from the states of its processes. */
interface GatewayStatus extends Omit<ProcessStatus, 'worker'> { readonly workers: number }

const STORE_NAMES: Readonly<Record<StoreStatus['name'], string>> = { valkey: 'Valkey', postgres: 'PostgreSQL' }

export function statusCommand(): Command {
  return new Command('status')
    .description('Show the running gateway: version, configuration, upstreams with their circuits, requests in flight.')
    .addOption(configOption('the configuration, which names the ledger'))
    .option('--json', 'JSON')
    .option('--ready', 'print nothing but why the gateway does not serve; ends with 1 then, within a second')
    .addHelpText('after', `
Asks the gateway on this machine that uses the ledger of the configuration. A circuit that is open
is shown with since when, what failed first, and the id of the request that failed.

--ready is for the health checks of containers. It needs no address and no scheme. A gateway without a
ledger is asked at server.listen.

Examples:
  gateway status
  gateway status --ready && echo serving
  gateway status --json | jq '.circuits[] | .upstream'
${EXIT_CODES.replace('failed while running', 'no gateway runs with this ledger')}`)
    .action(status)
}

interface StatusOptions {
  readonly config: string
  readonly json?: true
  readonly ready?: true
}

async function status({ config: file, json, ready }: StatusOptions, command: Command): Promise<void> {
  if (ready === true) return requireReady(file, command)
  const processes = await askGateway<readonly ProcessStatus[]>(file, 'GET', '/status', command)
  const state = merge(processes)
  process.stdout.write(json === true ? `${JSON.stringify(state)}\n` : textOf(state))
}

/** Merges the states of workers. Each worker has its own circuits: of the circuits of one target, the one that opened first is shown. */
function merge(processes: readonly ProcessStatus[]): GatewayStatus {
  const [first] = processes
  if (first === undefined) throw new Error('no process of the gateway has answered')
  const { worker: _, ...status } = first
  const sum = (of: (each: ProcessStatus) => number): number => processes.reduce((total, each) => total + of(each), 0)
  const circuits = new Map<string, CircuitStatus>()
  const ordered = processes.flatMap(each => each.circuits).sort((a, b) => a.since.localeCompare(b.since))
  for (const circuit of ordered.toReversed()) circuits.set(`${circuit.upstream}\n${circuit.model}`, circuit)
  // For each store, a state with a failure replaces a state without.
  const stores = new Map(processes.flatMap(each => each.stores).sort((a, b) => Number(a.failure !== null) - Number(b.failure !== null))
    .map(store => [store.name, store]))
  return {
    ...status,
    workers: processes.length,
    since: processes.map(({ since }) => since).sort()[0] ?? first.since,
    requests_in_flight: sum(each => each.requests_in_flight),
    circuits: [...circuits.values()].toReversed(),
    stores: [...stores.values()],
    ledger: first.ledger && {
      healthy: processes.every(({ ledger }) => ledger?.healthy ?? true),
      waiting: sum(({ ledger }) => ledger?.waiting ?? 0), lost: sum(({ ledger }) => ledger?.lost ?? 0),
    },
  }
}

function textOf(state: GatewayStatus): string {
  const { version, since, workers, config, circuits, upstreams, ledger, outbox_rows: outbox } = state
  const lines = [
    ['Gateway', `${version}, ${state.state}, since ${since}${workers > 1 ? `, ${workers} workers` : ''}`],
    ['Configuration', `${config.file}, ${config.hash.slice(0, 12)}, loaded ${config.loaded_at}`],
    ...config.rejected_at === null ? [] : [['Last reload', `rejected ${config.rejected_at}`]],
    ...config.restart_needed.length === 0 ? [] : [['Restart needed', config.restart_needed.join(', ')]],
    ['In flight', formatNumber(state.requests_in_flight)],
    ['Ledger', ledger === null ? 'none' : `${ledger.healthy ? 'written' : 'cannot be written'}, ${formatNumber(ledger.waiting)} rows wait, ${formatNumber(ledger.lost)} lost`],
    ...outbox === null ? [] : [['Outbox', `${formatNumber(outbox)} rows`]],
    ...state.stores.map(({ name, failure, since: at }) => [
      STORE_NAMES[name], failure === null ? `takes writes, since ${at}` : `takes no writes, since ${at}: ${escapeControlCharacters(failure)}`,
    ]),
  ] as const
  const width = Math.max(...lines.map(([label]) => label?.length ?? 0)) + 1
  const head = lines.map(([label, text]) => `${`${label}:`.padEnd(width)} ${text}\n`).join('')
  return `${head}\n${table<CircuitStatus | string>([
    { title: 'UPSTREAM', text: each => (typeof each === 'string' ? each : each.upstream) },
    { title: 'MODEL', text: each => (typeof each === 'string' ? '-' : each.model ?? 'all') },
    { title: 'CIRCUIT', text: each => (typeof each === 'string' ? 'closed' : each.circuit) },
    { title: 'SINCE', text: each => (typeof each === 'string' ? '-' : each.since) },
    { title: 'WHY', text: each => (typeof each === 'string' ? '-' : causeText(each)) },
  ], upstreams.flatMap((name): (CircuitStatus | string)[] => {
    const open = circuits.filter(({ upstream }) => upstream === name)
    return open.length === 0 ? [name] : open
  }))}${config.problems.map(problem => `\n${problem}\n`).join('')}`
}

function causeText({ first, failures }: CircuitStatus): string {
  if (first === null) return 'unknown'
  const count = failures > 1 ? `, ${failures} failures since ${new Date(first.at).toISOString()}` : ''
  return escapeControlCharacters(`${first.reason}${first.requestId === null ? '' : ` (request ${first.requestId})`}${count}`)
}
