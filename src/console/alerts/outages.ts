import { compileGlobs } from '../../config/glob.ts'
import type { Route } from '../../config/types.ts'
import { circuitOf, type CandidateState } from '../state/candidates.ts'

/** A target: a model at an upstream. null = no request named a model, or the whole upstream fails its health checks. */
type Candidate = readonly [upstream: string, model: string | null]

/**
 * Finds routes of which every target has an open or half-open circuit.
 *
 * @param states states of targets, by upstream
 * @returns a function that returns the first such route with a target; null = every route with this target has another target that works
 */
export function findOutages(
  routes: readonly Route[], states: ReadonlyMap<string, readonly CandidateState[]>,
): (upstream: string, model: string | null) => Route | null {
  const outages = new Map<string, Route>()
  const known = (upstream: string): readonly CandidateState[] => states.get(upstream) ?? []
  const add = (route: Route, [upstream, model]: Candidate): void => {
    // The models of an upstream are unknown if it fails its health checks before the first request.
    const shown = known(upstream).some(state => state.model === model) ? model : null
    const id = JSON.stringify([upstream, shown])
    if (!outages.has(id)) outages.set(id, route)
  }
  const table = routes.map(route => ({ route, takes: takesModel(route) }))
  for (const [index, { route, takes }] of table.entries()) {
    // A target without a model gets the model that the client requests.
    const passing = route.targets.filter(({ model }) => model === null).flatMap(({ upstream }) => known(upstream.name))
    const isReached = (model: string | null): boolean =>
      takes(model) && !table.slice(0, index).some(earlier => earlier.route.path === null && earlier.takes(model))
    const asked = route.targets.every(({ model }) => model !== null) ? [null]
      : [...new Set(passing.map(({ model }) => model))].filter(isReached)
    for (const model of asked) {
      const candidates = route.targets.map((target): Candidate => [target.upstream.name, target.model ?? model])
      if (candidates.some(([upstream, name]) => circuitOf(name, known(upstream)) === 'closed')) continue
      for (const candidate of candidates) add(route, candidate)
    }
  }
  return (upstream, model) => outages.get(JSON.stringify([upstream, model])) ?? null
}

function takesModel({ models }: Route): (model: string | null) => boolean {
  if (models === null) return () => true
  const matches = compileGlobs(models)
  // null stands for the whole upstream, and so for every model that a glob matches.
  return model => model === null || matches(model)
}
