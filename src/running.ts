import type { GatewayError } from './errors.ts'
import type { Exchange } from './exchange.ts'

/** The exchanges under way. */
export class Running {
  readonly #exchanges = new Set<Exchange>()
  readonly #waiting: (() => void)[] = []

  get size(): number {
    return this.#exchanges.size
  }

  add(exchange: Exchange): void {
    this.#exchanges.add(exchange)
  }

  delete(exchange: Exchange): void {
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
