import type { Route } from '../config/types.ts'

/** Maximum number of labels from clients for each route with globs. Further names have the label `other`. */
const MAX_NAMES_PER_ROUTE = 200
const MAX_LENGTH = 100

const OTHER_MODEL = 'other'
/** The label of requests without a route, because clients can send any name. */
const NO_MODEL = ''

/** Decides which names of models become labels, so that clients cannot create an unlimited number of series. */
export class ModelLabels {
  readonly #maxNames: number
  #configured: ReadonlySet<string> = new Set()
  /** Names from clients that a glob matched, by the text of the route. */
  #chosen = new Map<string, Set<string>>()

  /** @param workers number of processes whose labels are counted together; each process gets an equal share of the names */
  constructor(workers = 1) {
    this.#maxNames = Math.max(1, Math.floor(MAX_NAMES_PER_ROUTE / workers))
  }

  configure(routes: readonly Route[]): void {
    const names = routes.flatMap(({ models }) => models ?? []).filter(glob => !glob.includes('*'))
    this.#configured = new Set(names)
    const kept = new Set(routes.map(({ text }) => text))
    for (const text of this.#chosen.keys()) if (!kept.has(text)) this.#chosen.delete(text)
  }

  /** @param route text of the route that matched; null = no route */
  labelOf(model: string | null, route: string | null): string {
    if (model === null || route === null) return NO_MODEL
    if (this.#configured.has(model)) return model
    const names = this.#chosen.get(route)
    if (names?.has(model)) return model
    const name = shortened(model)
    if (names === undefined) {
      this.#chosen.set(route, new Set([name]))
      return name
    }
    if (names.has(name)) return name
    if (names.size >= this.#maxNames) return OTHER_MODEL
    names.add(name)
    return name
  }

  /** @param model the name that an upstream was asked for */
  knownLabel(model: string): string {
    if (model === NO_MODEL || this.#configured.has(model)) return model
    const name = shortened(model)
    for (const names of this.#chosen.values()) if (names.has(name)) return name
    return OTHER_MODEL
  }
}

/** Shortens a name. `slice` can cut a surrogate pair, so `toWellFormed` replaces the remaining half. */
function shortened(model: string): string {
  return model.slice(0, MAX_LENGTH).toWellFormed()
}
