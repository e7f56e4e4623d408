import type { GatewayError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { Slots } from './slots.ts'

/** How many exchanges are under way. */
class Count {
  #size = 0
  readonly #waiting: (() => void)[] = []

  get size(): number {
    return this.#size
  }

  up(): void {
    this.#size++
  }

  down(): void {
    this.#size--
    if (this.#size === 0) for (const tell of this.#waiting.splice(0)) tell()
  }

  /** Calls back once, when nothing runs: at once if that is now. */
  whenIdle(callback: () => void): void {
    if (this.#size === 0) callback()
    else this.#waiting.push(callback)
  }
}

/** All exchanges under way. */
export class Running {
  readonly #exchanges = new Slots<Exchange>()
  readonly #count = new Count()

  get size(): number {
    return this.#count.size
  }

  /** In no order. */
  [Symbol.iterator](): Iterator<Exchange> {
    return this.#exchanges[Symbol.iterator]()
  }

  /** @returns what tells it again when it ends */
  begin(exchange: Exchange): number {
    this.#count.up()
    return this.#exchanges.add(exchange)
  }

  end(ticket: number): void {
    this.#exchanges.delete(ticket)
    this.#count.down()
  }

  /** Ends all of them from outside. */
  stopAll(reason: GatewayError): void {
    for (const exchange of this.#exchanges) exchange.stop(reason)
  }

  /** Calls back once, when nothing runs: at once if that is now. */
  whenIdle(callback: () => void): void {
    this.#count.whenIdle(callback)
  }
}

/** Those of them that began with one configuration. */
export class RunningShare {
  readonly #all: Running
  readonly #count = new Count()

  constructor(all: Running) {
    this.#all = all
  }

  /** @returns what tells it again when it ends */
  begin(exchange: Exchange): number {
    this.#count.up()
    return this.#all.begin(exchange)
  }

  end(ticket: number): void {
    this.#all.end(ticket)
    this.#count.down()
  }

  /** Calls back once, when nothing runs: at once if that is now. */
  whenIdle(callback: () => void): void {
    this.#count.whenIdle(callback)
  }
}
