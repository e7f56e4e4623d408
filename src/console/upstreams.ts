import { isoTime } from '../base/clock.ts'
import type { CircuitCause, CircuitFailure } from '../routing/circuit-log.ts'
import type { QueryOf } from './api/api.ts'
import type { UpstreamState } from './api/panel.ts'
import type { UpstreamDetails } from './api/upstream.ts'
import { addressOf, candidateStates, healthOf } from './state/candidates.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import type { Context, Operations } from './context.ts'
import { periodOf } from './reports/period.ts'
import { NO_FIGURES } from './reports/sums.ts'
import type { StoredCircuitChange } from './store/circuit-history.ts'
import { credentialsOf, limitsOf } from './upstream-resources.ts'
import type { WorkerActivity, Workers } from './state/workers.ts'

type UpstreamOperations = Pick<Operations, 'GET /upstreams' | 'GET /upstreams/:name'>

const NO_TRAFFIC = { figures: NO_FIGURES, first_byte: { p50_ms: null, p95_ms: null }, share: 0 }

export function upstreamOperations({ host, clock, reports, store }: Context, workers: Workers): UpstreamOperations {
  const states = async (all: readonly WorkerActivity[], query: QueryOf<'GET /upstreams'>): Promise<UpstreamState[]> => {
    const gateway = host.current()
    const candidatesOf = candidateStates(all)
    const used = gateway.accounts.ledger === null ? [] : await reports.upstreamFigures(query)
    const figuresOf = new Map(used.map(one => [one.name, one]))
    return [...gateway.config.upstreams.keys()].map(name => {
      const candidates = candidatesOf.get(name) ?? []
      const { figures, first_byte, share } = figuresOf.get(name) ?? NO_TRAFFIC
      const inFlight = candidates.reduce((total, { in_flight: count }) => total + count, 0)
      return {
        name, url: addressOf(gateway, name), health: healthOf(candidates), in_flight: inFlight, candidates, figures, first_byte, share,
      }
    })
  }

  return {
    'GET /upstreams': async ({ query }) => {
      const upstreams = await states(await workers.all(), query)
      return { upstreams: upstreams.sort((a, b) => b.figures.requests - a.figures.requests) }
    },

    'GET /upstreams/:name': async ({ params: { name }, query }) => {
      const { accounts, config, sharedState: { startedAt } } = host.current()
      const configured = config.upstreams.get(name)
      if (configured === undefined) throw new ConsoleProblem('not_found', `There is no upstream ${JSON.stringify(name)}.`)
      const { from, to } = periodOf(query, clock.wall())
      const all = await workers.all()
      const [upstreams, changes, report] = await Promise.all([
        states(all, query), store.call('circuitChanges', name, from, to),
        accounts.ledger === null ? null : reports.upstreamReport(name, query),
      ])
      const failure = all.flatMap(({ credentialFailures }) => credentialFailures).filter(([upstream]) => upstream === name)
        .map(([, each]) => each).sort((a, b) => b.at - a.at)[0]
      const upstream = upstreams.find(each => each.name === name) as UpstreamState
      const seen = all.flatMap(({ upstreams: each }) => each.filter(one => one.name === name))
      return {
        upstream,
        circuits: openCircuits(all, name),
        changes: withRestart(changes, startedAt).map(change => ({
          at: isoTime(change.at), worker: change.worker, model: change.model, state: change.state, failures: change.failures,
          ...toCause(change),
        })),
        limits: limitsOf(configured, seen, upstream.in_flight),
        credentials: credentialsOf(configured, seen, clock.wall()),
        credential_failure: failure === undefined ? null : { at: isoTime(failure.at), reason: failure.reason },
        report,
      }
    },
  }
}

/** The open circuits of an upstream, one for each model. Each worker has its own circuits: the circuit that opened first is shown. */
function openCircuits(all: readonly WorkerActivity[], name: string): UpstreamDetails['circuits'] {
  const open = all.flatMap(({ candidates }) => candidates).filter(({ upstream, circuit }) => upstream === name && circuit !== 'closed')
    .sort((a, b) => (a.open_since ?? '').localeCompare(b.open_since ?? ''))
  const byModel = new Map(open.toReversed().map(candidate => [candidate.model, candidate]))
  return [...byModel.values()].toReversed().map(({ model, circuit, open_since: since, consecutive_failures: failures, cause }) => ({
    model, circuit: circuit as 'open' | 'probing', since, failures, ...toCause(cause),
  }))
}

/** Adds changes for the restart, which closed the circuits that were open when the process ended. @param startedAt ms since 1970 */
function withRestart(changes: readonly StoredCircuitChange[], startedAt: number): StoredCircuitChange[] {
  const circuit = ({ worker, model }: StoredCircuitChange) => `${worker} ${model}`
  const last = new Map(changes.filter(({ at }) => at < startedAt).map(change => [circuit(change), change]))
  const closed = [...last.values()].filter(({ state }) => state === 'open')
    .map((change): StoredCircuitChange => ({ ...change, at: startedAt, state: 'closed' }))
  return [...changes, ...closed].sort((a, b) => a.at - b.at)
}

function toCause({ first, last }: CircuitCause): Pick<UpstreamDetails['changes'][number], 'first' | 'last'> {
  return { first: first && toFailure(first), last: last && toFailure(last) }
}

function toFailure({ at, reason, requestId }: CircuitFailure) {
  return { at: isoTime(at), reason, request_id: requestId }
}
