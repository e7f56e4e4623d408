/**
 * Items that come and go with requests, each in its own slot; a free slot is reused.
 * A Set or a Map keeps deleted items: when it grows, V8 links the old table to the new one. Once a table is in the old generation,
 * all later ones stay there with their items until the next collection (bench/garbage.ts).
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

  /** In no particular order; may leave out items that are added meanwhile. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const item of this.#items) if (item !== null) yield item
  }
}
