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
    this.isIdle = Boolean(exchange.reserved?.ledgerEntry)
  }

  /** There is something new: a second from now it is drafted, with what comes until then. */
  schedule(): void {
    if (!this.isIdle) return
    this.isIdle = false
    this.#gateway.accounts.checkpointTimer.add(this.#onTimer)
  }

  /** Drafts it now. */
  writeNow(): void {
    writeCheckpoint(this.#gateway, this.#exchange)
  }

  readonly #onTimer = (): void => {
    this.isIdle = true
    this.writeNow()
  }
}

/** Writes to the ledger what is known of a running exchange, should the process die. */
export function writeCheckpoint({ accounts: { ledger } }: Gateway, { reserved }: Exchange): void {
  if (reserved?.ledgerEntry) ledger?.updateDraft(reserved.ledgerEntry)
}
