import type { GatewayError } from '../base/errors.ts'
import type { Exchange } from './exchange.ts'
import { Slots } from '../base/slots.ts'

/** How many exchanges are under way, and who waits until none is. */
class Count {
  #size = 0
  readonly #waiting: (() => void)[] = []

  get size(): number {
    return this.#size
  }

  /** Calls back once, when nothing runs: at once if that is now. */
  whenIdle(callback: () => void): void {
    if (this.#size === 0) callback()
    else this.#waiting.push(callback)
  }

  protected up(): void {
    this.#size++
  }

  protected down(): void {
    this.#size--
    if (this.#size === 0) for (const tell of this.#waiting.splice(0)) tell()
  }
}

/** All exchanges under way. */
export class Running extends Count {
  readonly #exchanges = new Slots<Exchange>()

  /** @returns what tells it again when it ends */
  begin(exchange: Exchange): number {
    this.up()
    return this.#exchanges.add(exchange)
  }

  end(ticket: number): void {
    this.#exchanges.delete(ticket)
    this.down()
  }

  /** In no order. */
  [Symbol.iterator](): Iterator<Exchange> {
    return this.#exchanges[Symbol.iterator]()
  }

  /** Ends all of them from outside. */
  stopAll(reason: GatewayError): void {
    for (const exchange of this.#exchanges) exchange.stop(reason)
  }
}

/** Those of them that began with one configuration. */
export class RunningShare extends Count {
  readonly #all: Running

  constructor(all: Running) {
    super()
    this.#all = all
  }

  /** @returns what tells it again when it ends */
  begin(exchange: Exchange): number {
    this.up()
    return this.#all.begin(exchange)
  }

  end(ticket: number): void {
    this.#all.end(ticket)
    this.down()
  }
}
