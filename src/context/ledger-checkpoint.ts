import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'

/** Tells the ledger of what is new in an exchange that runs, should the process die. */
export class LedgerCheckpoint {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  /** No write is due yet, and there is a ledger to write to. */
  isIdle: boolean

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.isIdle = exchange.ledgerEntry !== null
  }

  /** There is something new: a second from now it is drafted, with what comes until then. */
  schedule(): void {
    if (!this.isIdle) return
    this.isIdle = false
    this.#gateway.accounts.checkpointTimer.add(this.#onTimer)
  }

  /** Drafts it now. */
  writeNow(): void {
    const { ledgerEntry: entry } = this.#exchange
    if (entry) this.#gateway.accounts.ledger?.updateDraft(entry)
  }

  readonly #onTimer = (): void => {
    this.isIdle = true
    this.writeNow()
  }
}
