import type { GatewayError } from '../../base/errors.ts'
import { Slots } from '../../base/slots.ts'
import type { Exchange } from './exchange.ts'

class ExchangeCounter {
  size = 0
  readonly #waiting: (() => void)[] = []

  /** Calls `callback` once: now if no exchange is running, otherwise when the last running exchange ends. */
  whenIdle(callback: () => void): void {
    if (this.size === 0) callback()
    else this.#waiting.push(callback)
  }

  protected decrement(): void {
    this.size--
    if (this.size === 0) for (const callback of this.#waiting.splice(0)) callback()
  }
}

/** The running exchanges of all configurations, including those that a reload replaced. */
export class ActiveExchanges extends ExchangeCounter {
  readonly #exchanges = new Slots<Exchange>()

  /** @returns the ticket for `end` */
  begin(exchange: Exchange): number {
    this.size++
    return this.#exchanges.add(exchange)
  }

  end(ticket: number): void {
    this.#exchanges.delete(ticket)
    this.decrement()
  }

  [Symbol.iterator](): Iterator<Exchange> {
    return this.#exchanges[Symbol.iterator]()
  }

  stopAll(reason: GatewayError): void {
    for (const exchange of this.#exchanges) exchange.stop(reason)
  }
}

/** The running exchanges that began with one configuration. */
export class GatewayExchanges extends ExchangeCounter {
  readonly #all: ActiveExchanges

  constructor(all: ActiveExchanges) {
    super()
    this.#all = all
  }

  /** @returns the ticket for `end` */
  begin(exchange: Exchange): number {
    this.size++
    return this.#all.begin(exchange)
  }

  end(ticket: number): void {
    this.#all.end(ticket)
    this.decrement()
  }
}
