/**
 * Items that come and go with requests, each in its own slot. A deleted item's slot is
 * reused.
 *
 * A Set or a Map would keep deleted items: when it grows or shrinks, V8 links its old
 * table to the new one. Once one table is in the old generation, the later ones follow,
 * each with everything that it held, and stay until the next collection of the old
 * generation (bench/garbage.ts).
 */
export class Slots<T extends object> {
  readonly #items: (T | null)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#items.length - this.#free.length
  }

  /** @returns the item's slot, from 0; reused after the item is deleted */
  add(item: T): number {
    const slot = this.#free.pop()
    if (slot === undefined) return this.#items.push(item) - 1
    this.#items[slot] = item
    return slot
  }

  /** The item in a slot; null = empty. */
  at(slot: number): T | null {
    return this.#items[slot] ?? null
  }

  /** Replaces the item. */
  replace(slot: number, item: T): void {
    if (this.at(slot) !== null) this.#items[slot] = item
  }

  /** Does nothing if the slot is empty. */
  delete(slot: number): void {
    if ((this.#items[slot] ?? null) === null) return
    this.#items[slot] = null
    this.#free.push(slot)
  }

  /** In no particular order. Items that are added meanwhile may be left out. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const item of this.#items) if (item !== null) yield item
  }
}
