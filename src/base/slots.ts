/**
 * What comes and goes with requests, each in a place of its own that is used
 * again when it has left.
 *
 * A Set or a Map would keep what has left it: when it makes room, V8 links its
 * old table to the new one. Once one table has come into the old generation, as
 * every collection of that brings them, those behind it follow, each with all
 * that it held, and stay until the next such collection (bench/garbage.ts).
 */
export class Slots<T extends object> {
  readonly #items: (T | null)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#items.length - this.#free.length
  }

  /** @returns its place, until it is deleted: a small number, from 0 */
  add(item: T): number {
    const slot = this.#free.pop()
    if (slot === undefined) return this.#items.push(item) - 1
    this.#items[slot] = item
    return slot
  }

  /** What is in a place; null = nothing is. */
  at(slot: number): T | null {
    return this.#items[slot] ?? null
  }

  /** Replaces the item. */
  replace(slot: number, item: T): void {
    if (this.at(slot) !== null) this.#items[slot] = item
  }

  /** Does nothing where there is nothing. */
  delete(slot: number): void {
    if (this.at(slot) === null) return
    this.#items[slot] = null
    this.#free.push(slot)
  }

  /** In no order. What comes meanwhile may be left out. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const item of this.#items) if (item !== null) yield item
  }
}
