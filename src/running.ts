import type { GatewayError } from './errors.ts'
import type { Exchange } from './exchange.ts'

/** Exchanges under way: all of them, or those that began with one configuration. */
export class Running {
  readonly #all: Running | null
  readonly #exchanges = new Set<Exchange>()
  readonly #waiting: (() => void)[] = []

  /** @param all where they are counted too; null where this is all */
  constructor(all: Running | null = null) {
    this.#all = all
  }

  get size(): number {
    return this.#exchanges.size
  }

  [Symbol.iterator](): IterableIterator<Exchange> {
    return this.#exchanges.values()
  }

  add(exchange: Exchange): void {
    this.#exchanges.add(exchange)
    this.#all?.add(exchange)
  }

  delete(exchange: Exchange): void {
    this.#all?.delete(exchange)
    this.#exchanges.delete(exchange)
    if (this.#exchanges.size === 0) for (const tell of this.#waiting.splice(0)) tell()
  }

  /** Ends all of them from outside. */
  stopAll(reason: GatewayError): void {
    for (const exchange of this.#exchanges) exchange.stop(reason)
  }

  /** Calls back once, when nothing runs: at once if that is now. */
  whenIdle(callback: () => void): void {
    if (this.#exchanges.size === 0) callback()
    else this.#waiting.push(callback)
  }
}
