import { starIn } from '../base/wildcard.ts'
import type { Route, Target } from '../config/types.ts'

type Match = (text: string) => boolean

interface CompiledRoute {
  readonly route: Route
  readonly path: Match | null
  readonly model: Match | null
  /** A glob of the route matches every name. */
  readonly takesAny: boolean
}

/** `gateway explain` prints it. */
export type MismatchReason = 'path' | 'model' | 'no model'

/** Pairs of path and model, far above what one gateway serves. */
const MAX_CACHED_ROUTES = 4096
/** Longer pairs are not cached. */
const MAX_CACHED_KEY_CHARS = 1024

/** The first route whose path and model match wins. A route that lists models takes only requests that name one. */
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

  /** Does a route match this path with any model? */
  servesPath(path: string): boolean {
    return this.#rows.some(row => row.path === null || row.path(path))
  }

  /** Does a route that lists paths match this path? */
  namesPath(path: string): boolean {
    return this.#rows.some(row => row.path?.(path) ?? false)
  }

  /** Does a route match this model on some path? Cached for lists of models. @param model of the configuration, not a client's */
  servesModel(model: string): boolean {
    let isServed = this.#servedModels.get(model)
    if (isServed === undefined) {
      isServed = this.#rows.some(row => row.model === null || row.model(model))
      this.#servedModels.set(model, isServed)
    }
    return isServed
  }

  /** Does a route list this model by name, or by a glob that does not match every model? */
  listsModel(model: string): boolean {
    return this.#rows.some(row => !row.takesAny && row.model?.(model))
  }

  /** Every route up to the matching one, with the reason why each did or did not match. */
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

/** Replaces stars in the targets' model names by the text that the route's star matched. */
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
