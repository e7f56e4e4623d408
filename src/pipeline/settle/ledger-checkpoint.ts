import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'

/** Tells the ledger of what is new in an exchange that runs, should the process die. */
export class LedgerCheckpoint {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  /** Nobody has to be told: a draft waits to be written, or there is nowhere to write. */
  #isSuppressed: boolean

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#isSuppressed = exchange.ledgerEntry === null
  }

  /** There is something new: a second from now it is drafted, with what comes until then. */
  schedule(): void {
    if (this.#isSuppressed) return
    this.#isSuppressed = true
    this.#gateway.accounts.checkpointTimer.add(this.#onTimer)
  }

  /** Drafts it now. */
  writeNow(): void {
    const { ledgerEntry: entry } = this.#exchange
    if (entry) this.#gateway.accounts.ledger?.updateDraft(entry)
  }

  readonly #onTimer = (): void => {
    this.#isSuppressed = false
    this.writeNow()
  }
}
