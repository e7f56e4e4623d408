/**
 * Items that come and go with requests. Each item has its own slot, and a free slot is reused.
 * A Set or a Map would keep deleted items: when it grows, V8 links the old table to the new table. If one table is in the old generation,
 * all later tables and their items stay there until the next collection (bench/garbage.ts).
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

  at(slot: number): T | null {
    return this.#items[slot] ?? null
  }

  replace(slot: number, item: T): void {
    if (this.at(slot) !== null) this.#items[slot] = item
  }

  delete(slot: number): void {
    if ((this.#items[slot] ?? null) === null) return
    this.#items[slot] = null
    this.#free.push(slot)
  }

  /** Yields the items in no particular order. Items that are added during the iteration may be left out. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const item of this.#items) if (item !== null) yield item
  }
}
