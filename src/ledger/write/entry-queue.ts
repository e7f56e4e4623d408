import type { LedgerEntry } from '../entry.ts'

/** The waiting entries. An entry moves to the end when its request ends, so that rows are written in the order in which requests end. */
export class EntryQueue {
  /** null = the entry has moved to the end. */
  #entries: (LedgerEntry | null)[] = []
  /** Position of the first entry of `#entries`. Positions are counted from the start of the process. */
  #firstPlace = 0
  size = 0

  push(entry: LedgerEntry): void {
    if (entry.place === null) this.size += 1
    else this.#entries[entry.place - this.#firstPlace] = null
    entry.place = this.#firstPlace + this.#entries.push(entry) - 1
  }

  take(max: number): LedgerEntry[] {
    const taken: LedgerEntry[] = []
    let places = 0
    for (; places < this.#entries.length && taken.length < max; places += 1) {
      const entry = this.#entries[places] ?? null
      if (entry === null) continue
      entry.place = null
      taken.push(entry)
    }
    this.#entries.splice(0, places)
    this.#firstPlace += places
    this.size -= taken.length
    return taken
  }

  *[Symbol.iterator](): Generator<LedgerEntry, void, undefined> {
    for (const entry of this.#entries) if (entry !== null) yield entry
  }
}
