import type { Gateway } from '../../pipeline/parts/gateway.ts'
import type { UpstreamState } from '../api/panel.ts'
import type { WorkerActivity } from './workers.ts'

export type CandidateState = UpstreamState['candidates'][number]

/** Circuits, the worst first. The worst state of all workers is shown, because the other workers will reach that state soon. */
const CIRCUITS_BY_SEVERITY = ['open', 'probing', 'closed'] as const

/** The states of targets by upstream, merged from all workers. */
export function candidateStates(all: readonly WorkerActivity[]): Map<string, CandidateState[]> {
  const byUpstream = new Map<string, Map<string | null, CandidateState>>()
  for (const candidate of all.flatMap(({ candidates }) => candidates)) {
    const { upstream, model, circuit, opens_in_ms, in_flight, first_byte_ms } = candidate
    const state = { model, circuit, opens_in_ms, in_flight, first_byte_ms }
    const states = byUpstream.get(upstream) ?? new Map<string | null, CandidateState>()
    const known = states.get(model)
    states.set(model, known ? mergeStates(known, state) : state)
    byUpstream.set(upstream, states)
  }
  return new Map([...byUpstream].map(([name, states]) => [name, [...states.values()]]))
}

function mergeStates(a: CandidateState, b: CandidateState): CandidateState {
  const [worse, other] = CIRCUITS_BY_SEVERITY.indexOf(a.circuit) <= CIRCUITS_BY_SEVERITY.indexOf(b.circuit) ? [a, b] : [b, a]
  return { ...worse, in_flight: a.in_flight + b.in_flight, first_byte_ms: worse.first_byte_ms ?? other.first_byte_ms }
}

/** @param known states of the upstream's targets. Without requests for the model, the upstream's health checks decide */
export function circuitOf(model: string | null, known: readonly CandidateState[]): CandidateState['circuit'] {
  const asked = known.find(state => state.model === model)
  if (asked) return asked.circuit
  const failsChecks = known.some(state => state.circuit === 'open' && state.opens_in_ms === null)
  return failsChecks ? 'open' : 'closed'
}

export function healthOf(states: readonly CandidateState[]): UpstreamState['health'] {
  if (states.length === 0) return 'unknown'
  const failing = states.filter(({ circuit }) => circuit !== 'closed').length
  if (failing === 0) return 'well'
  return failing === states.length ? 'down' : 'failing'
}

/** URL of an upstream; null = the simulator. URLs in the configuration contain no credentials. */
export function addressOf({ config }: Gateway, name: string): string | null {
  return config.upstreams.get(name)?.url?.href ?? null
}
