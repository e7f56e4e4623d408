import type { Route } from '../config/types.ts'

/** Maximum number of labels that clients choose by the globs of one route; further names count as `other`. */
const MAX_NAMES_PER_ROUTE = 200
const MAX_LENGTH = 100

const OTHER_MODEL = 'other'
/** The label of a request that no route took: clients can write any name, so none is shown. */
const NO_MODEL = ''

/** Decides which model names become label values, so that clients cannot make an unlimited number of series. */
export class ModelLabels {
  readonly #maxNames: number
  /** Names in the configuration. */
  #configured: ReadonlySet<string> = new Set()
  /** By the route's text: names that clients chose and that its globs matched. */
  #chosen = new Map<string, Set<string>>()

  /** @param workers processes that count together: each has its share of the names */
  constructor(workers = 1) {
    this.#maxNames = Math.max(1, Math.floor(MAX_NAMES_PER_ROUTE / workers))
  }

  /** Another configuration is active. */
  configure(routes: readonly Route[]): void {
    const names = routes.flatMap(({ models }) => models ?? []).filter(glob => !glob.includes('*'))
    this.#configured = new Set(names)
    const kept = new Set(routes.map(({ text }) => text))
    for (const text of this.#chosen.keys()) if (!kept.has(text)) this.#chosen.delete(text)
  }

  /** @param route the text of the route that took the request; null = none did */
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

  /** The label of the model that was requested from an upstream. */
  knownLabel(model: string): string {
    if (model === NO_MODEL || this.#configured.has(model)) return model
    const name = shortened(model)
    for (const names of this.#chosen.values()) if (names.has(name)) return name
    return OTHER_MODEL
  }
}

/** Replaces half a character at the end, which would make the text invalid. */
function shortened(model: string): string {
  return model.slice(0, MAX_LENGTH).toWellFormed()
}
