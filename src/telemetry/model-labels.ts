import type { Route } from '../config/types.ts'

/** Labels that clients choose by the globs of one route; further names count as `other`. */
const MAX_NAMES_PER_ROUTE = 200
const MAX_LENGTH = 100

const OTHER_MODEL = 'other'
/** Clients can send any name, so a request without a route gets no label. */
const NO_MODEL = ''

/** Decides which model names become label values, so that clients cannot make an unlimited number of series. */
export class ModelLabels {
  readonly #maxNames: number
  #configured: ReadonlySet<string> = new Set()
  /** Names of clients that a glob matched, by the text of the route. */
  #chosen = new Map<string, Set<string>>()

  /** @param workers number of processes whose labels are counted together: each gets its share of the names */
  constructor(workers = 1) {
    this.#maxNames = Math.max(1, Math.floor(MAX_NAMES_PER_ROUTE / workers))
  }

  configure(routes: readonly Route[]): void {
    const names = routes.flatMap(({ models }) => models ?? []).filter(glob => !glob.includes('*'))
    this.#configured = new Set(names)
    const kept = new Set(routes.map(({ text }) => text))
    for (const text of this.#chosen.keys()) if (!kept.has(text)) this.#chosen.delete(text)
  }

  /** @param route text of the matched route; null = no route */
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

  /** @param model as requested from an upstream */
  knownLabel(model: string): string {
    if (model === NO_MODEL || this.#configured.has(model)) return model
    const name = shortened(model)
    for (const names of this.#chosen.values()) if (names.has(name)) return name
    return OTHER_MODEL
  }
}

/** `slice` can cut a surrogate pair, which `toWellFormed` replaces. */
function shortened(model: string): string {
  return model.slice(0, MAX_LENGTH).toWellFormed()
}
