import { starIn } from '../base/wildcard.ts'
import type { Route, Target } from '../config/types.ts'

type Match = (text: string) => boolean

interface CompiledRoute {
  readonly route: Route
  readonly path: Match | null
  readonly model: Match | null
  /** true = the route matches every model: it lists no models, or a glob matches every name. */
  readonly takesAny: boolean
}

/** Why a route does not match, for `gateway explain`. */
export type MismatchReason = 'path' | 'model' | 'no model'

/** Maximum cached pairs of path and model, far more than one gateway serves. */
const MAX_CACHED_ROUTES = 4096
/** Longer pairs of path and model are not cached. */
const MAX_CACHED_KEY_CHARS = 1024

/** Finds the first route whose path and model match. A route that lists models matches only requests that name a model. */
export class RouteTable {
  readonly #rows: readonly CompiledRoute[]
  readonly #routeCache = new Map<string, Route | null>()
  readonly #servedModels = new Map<string, boolean>()

  /** @param compile turns a list of globs into a test */
  constructor(routes: readonly Route[], compile: (globs: readonly string[]) => Match) {
    this.#rows = routes.map(route => ({
      route,
      path: route.path === null ? null : compile([route.path]),
      model: route.models === null ? null : compile(route.models),
      takesAny: route.models?.some(glob => /^\*+$/.test(glob)) ?? true,
    }))
  }

  /** @param path normalised, without the query @param model as the client sent it */
  match(path: string, model: string | null): Route | null {
    const pair = model === null ? path : `${path}\n${model}`
    const known = this.#routeCache.get(pair)
    if (known !== undefined) return known
    const found = this.#rows.find(row => mismatch(row, path, model) === null)?.route ?? null
    const route = found && withNames(found, model)
    // Clients choose the pairs, so the cache must not grow without bound.
    if (this.#routeCache.size >= MAX_CACHED_ROUTES) this.#routeCache.clear()
    if (pair.length <= MAX_CACHED_KEY_CHARS) this.#routeCache.set(pair, route)
    return route
  }

  /** @returns true = a route matches this path, with some model */
  servesPath(path: string): boolean {
    return this.#rows.some(row => row.path === null || row.path(path))
  }

  /** @returns true = a route with a configured path matches this path */
  namesPath(path: string): boolean {
    return this.#rows.some(row => row.path?.(path) ?? false)
  }

  /** @returns true = a route matches this model on some path @param model of the configuration: results are cached without a limit */
  servesModel(model: string): boolean {
    let isServed = this.#servedModels.get(model)
    if (isServed === undefined) {
      isServed = this.#rows.some(row => row.model === null || row.model(model))
      this.#servedModels.set(model, isServed)
    }
    return isServed
  }

  /** @returns true = a route lists this model by name, or by a glob that does not match every model */
  listsModel(model: string): boolean {
    return this.#rows.some(row => !row.takesAny && row.model?.(model))
  }

  /** All routes up to the matching route, each with the reason why it does not match. */
  trace(path: string, model: string | null): { route: Route; miss: MismatchReason | null }[] {
    const steps: { route: Route; miss: MismatchReason | null }[] = []
    for (const row of this.#rows) {
      const why = mismatch(row, path, model)
      steps.push({ route: why === null ? withNames(row.route, model) : row.route, miss: why })
      if (why === null) break
    }
    return steps
  }
}

/** Replaces the star in the model names of targets by the text that the star in the route's glob matches. */
function withNames(route: Route, model: string | null): Route {
  const { targets, on: { contextLength, contentFilter }, models } = route
  const all = [...targets, contextLength, contentFilter]
  if (model === null || models === null || !all.some(target => target?.model?.includes('*'))) return route
  const star = starIn(models, model) ?? model
  const named = <T extends Target | null>(target: T): T => (target?.model?.includes('*') ? { ...target, model: target.model.replace('*', () => star) } : target)
  return { ...route, targets: targets.map(named), on: { contextLength: named(contextLength), contentFilter: named(contentFilter) } }
}

function mismatch(row: CompiledRoute, path: string, model: string | null): MismatchReason | null {
  if (row.path !== null && !row.path(path)) return 'path'
  if (row.model === null) return null
  if (model === null) return 'no model'
  return row.model(model) ? null : 'model'
}
