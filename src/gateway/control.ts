import { createHash } from 'node:crypto'
import { chmodSync, rmSync, statSync } from 'node:fs'
import type * as http from 'node:http'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'
import { isoTime } from '../base/clock.ts'
import { makeDirectory } from '../base/files/directory.ts'
import { CONTROL_SOCKET } from '../base/files/gateway-files.ts'
import { messageOf } from '../base/message-of.ts'
import { FILE_MODE } from '../base/files/private-file.ts'
import { createSideServer } from '../base/server-limits.ts'
import { formatProblem } from '../config/problem.ts'
import type { Gateway } from '../pipeline/parts/gateway.ts'
import type { StoreState } from '../cluster/store-states.ts'
import { circuitName } from '../policy/hooks/hook.ts'
import { candidateOf } from '../routing/candidate.ts'
import type { Health } from '../routing/health.ts'
import type { CircuitCause } from '../routing/circuit-log.ts'
import type { ReloadResult } from './reloader.ts'

/** Requests from the commands `gateway status` and `gateway reload` on the same machine. */
export type ControlRequest = { readonly kind: 'status' } | { readonly kind: 'reload', /** As in ReloadEvent. */ readonly by: string }

export interface ProcessStatus {
  readonly version: string
  /** Number of the worker; null = there is only one process. */
  readonly worker: number | null
  /** Start of the process, ISO 8601. */
  readonly since: string
  readonly state: 'ok' | 'draining' | 'handing_over'
  readonly config: {
    readonly file: string
    /** SHA-256 of the text of the file, hexadecimal. */
    readonly hash: string
    readonly loaded_at: string
    readonly rejected_at: string | null
    readonly problems: readonly string[]
    readonly restart_needed: readonly string[]
  }
  readonly requests_in_flight: number
  readonly circuits: readonly CircuitStatus[]
  readonly upstreams: readonly string[]
  readonly ledger: { readonly healthy: boolean, readonly waiting: number, readonly lost: number } | null
  /** Number of rows that wait to be sent to PostgreSQL; null = rows are not sent. */
  readonly outbox_rows: number | null
  /** State of each store at its last write. */
  readonly stores: readonly StoreStatus[]
}

export interface StoreStatus extends Pick<StoreState, 'name' | 'failure'> {
  /** Time from which the store has this state, ISO 8601. */
  readonly since: string
}

/** A circuit that is open or half-open. */
export interface CircuitStatus extends CircuitCause {
  readonly upstream: string
  readonly model: string | null
  readonly circuit: 'open' | 'half-open'
  readonly since: string
  readonly failures: number
}

export type ReloadReport =
  | { readonly applied: true, readonly changes: readonly string[], readonly restart_needed: readonly string[], readonly warnings: readonly string[] }
  | { readonly applied: false, readonly problems: readonly string[] }

export interface ControlHandlers {
  status(): Promise<readonly ProcessStatus[]>
  reload(by: string): Promise<ReloadReport>
}

const MAX_PATH_LENGTH = 100
const MAX_CONNECTIONS = 64

/** Path of the control socket of a gateway with this ledger; null = the path is too long for a socket. */
export function controlPath(ledgerFile: string): string | null {
  const path = join(dirname(ledgerFile), CONTROL_SOCKET)
  return Buffer.byteLength(path) > MAX_PATH_LENGTH ? null : path
}

/**
 * Listens for `gateway status` and `gateway reload` on a socket that only the gateway's user can open. If a later gateway has the same
 * ledger, its socket replaces this socket.
 * @returns a function that closes the socket
 */
export async function openControl(ledgerFile: string, handlers: ControlHandlers, log: Logger): Promise<() => void> {
  const path = controlPath(ledgerFile)
  if (path === null) {
    log.warn({ path: dirname(ledgerFile) }, 'gateway status and gateway reload cannot be used: the path of the ledger is too long for a socket; use a shorter one')
    return () => {}
  }
  const server = createSideServer((req, res) => {
    void respond(req, handlers).then(
      ([status, body]) => res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
      (error: unknown) => res.writeHead(500).end(JSON.stringify({ error: messageOf(error) })),
    )
  }, MAX_CONNECTIONS)
  try {
    makeDirectory(dirname(path))
    rmSync(path, { force: true })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject).listen(path, resolve)
    await promise
    chmodSync(path, FILE_MODE)
  } catch (error) {
    log.warn({ err: error }, 'gateway status and gateway reload cannot be used: the socket cannot be opened; check the rights to the directory of the ledger')
    return () => {}
  }
  server.unref()
  const own = statSync(path).ino
  return () => {
    server.close()
    server.closeAllConnections()
    // Remove the socket only if it is still this gateway's: a gateway that started later may own the path.
    if (statSync(path, { throwIfNoEntry: false })?.ino === own) rmSync(path, { force: true })
  }
}

async function respond({ method, url = '/' }: http.IncomingMessage, handlers: ControlHandlers): Promise<[status: number, body: unknown]> {
  const { pathname, searchParams } = new URL(url, 'http://localhost')
  if (method === 'GET' && pathname === '/status') return [200, await handlers.status()]
  if (method === 'POST' && pathname === '/reload') return [200, await handlers.reload(searchParams.get('by') ?? 'control socket')]
  return [404, { error: 'there is no such operation' }]
}

export function processStatus({ config, hooks, version, health, accounts, sharedState }: Gateway): ProcessStatus {
  const { worker = null, startedAt, shutdown, activeExchanges, reloads } = sharedState
  const stats = accounts.ledger?.stats()
  const now = Date.now()
  return {
    version, worker,
    since: isoTime(startedAt),
    state: shutdown === null ? 'ok' : shutdown === 'hand_over' ? 'handing_over' : 'draining',
    config: {
      file: config.file,
      hash: createHash('sha256').update(config.text).digest('hex'),
      loaded_at: isoTime(reloads.loadedAt),
      rejected_at: reloads.failure && isoTime(reloads.failure.at),
      problems: reloads.failure?.problems.map(problem => formatProblem(problem)) ?? [],
      restart_needed: reloads.pending,
    },
    requests_in_flight: activeExchanges.size,
    circuits: [health, ...hooks === null ? [] : [hooks.health]].flatMap(each => openCircuits(each, now)),
    upstreams: [...config.upstreams.keys(), ...hooks?.names.map(circuitName) ?? []],
    ledger: stats === undefined ? null : { healthy: stats.healthy, waiting: stats.waiting, lost: stats.lost },
    outbox_rows: accounts.shipping?.stats().pending ?? null,
    stores: sharedState.stores.all.map(({ name, failure, since }) => ({ name, failure, since: isoTime(since) })),
  }
}

function openCircuits(health: Health, now: number): CircuitStatus[] {
  return health.conditions().filter(([, { circuit }]) => circuit !== 'closed').map(([id, condition]) => {
    const [upstream, model] = candidateOf(id)
    const { first, last } = health.causeOf(id)
    const circuit = condition.circuit === 'open' ? 'open' : 'half-open'
    const since = isoTime(now - (condition.openForMs ?? 0))
    return { upstream, model: model === '' ? null : model, circuit, since, failures: condition.consecutiveFailures, first, last }
  })
}

export function reloadReport(result: ReloadResult): ReloadReport {
  if (result.applied) {
    const warnings = result.warnings.map(problem => formatProblem(problem))
    return { applied: true, changes: result.changes, restart_needed: result.pending, warnings }
  }
  const problems = result.because === 'drain' ? ['the gateway is shutting down'] : result.problems.map(problem => formatProblem(problem))
  return { applied: false, problems }
}
