import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../gateway/gateway.ts'

/** Tells the ledger of what is new in an exchange that runs, should the process die. */
export class News {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  /** Nobody has to be told: a draft waits to be written, or there is nowhere to write. */
  #isQuiet: boolean

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#isQuiet = exchange.entry === null
  }

  /** There is something new: a second from now it is drafted, with what comes until then. */
  tell(): void {
    if (this.#isQuiet) return
    this.#isQuiet = true
    this.#gateway.accounts.drafts.add(this.#due)
  }

  /** Drafts it now. */
  draft(): void {
    const { entry } = this.#exchange
    if (entry) this.#gateway.accounts.ledger?.progress(entry)
  }

  readonly #due = (): void => {
    this.#isQuiet = false
    this.draft()
  }
}
