/** The first names of each group, so that clients cannot create an unlimited number of label values, sums or rows of tables. */
export class BoundedNames {
  readonly #groups = new Map<string, Set<string>>()

  /** @param limit maximum number of names in the group @returns false = the name is new, and the group is full */
  admits(group: string, name: string, limit: number): boolean {
    let names = this.#groups.get(group)
    if (names === undefined) this.#groups.set(group, names = new Set())
    if (names.has(name)) return true
    if (names.size >= limit) return false
    names.add(name)
    return true
  }

  /** Forgets all other groups. */
  keep(groups: { has(group: string): boolean }): void {
    for (const group of this.#groups.keys()) if (!groups.has(group)) this.#groups.delete(group)
  }
}
