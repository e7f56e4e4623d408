/** Stands for all values of a tag beyond the limit. */
export const OTHER = 'other'

/** The values that tags have had in this process, so that a client cannot make sums, budgets and tables without end. */
export class TagValues {
  readonly #seen = new Map<string, Set<string>>()

  /** @param limit of different values of the tag @returns the value; OTHER if it is new and one too many */
  bounded(tag: string, value: string, limit: number): string {
    let seen = this.#seen.get(tag)
    if (seen === undefined) this.#seen.set(tag, seen = new Set())
    if (seen.has(value)) return value
    if (seen.size >= limit) return OTHER
    seen.add(value)
    return value
  }

  /** Forgets tags that the configuration does not have any more. */
  keep(tags: ReadonlyMap<string, unknown>): void {
    for (const tag of this.#seen.keys()) if (!tags.has(tag)) this.#seen.delete(tag)
  }
}
