import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from './gateway.ts'

/** Writes the progress of an exchange to the ledger, in case the process dies. */
export class LedgerCheckpoint {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  /** No write is due, and there is a ledger to write to. */
  isIdle: boolean

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.isIdle = exchange.ledgerEntry !== null
  }

  /** Writes a second from now, with the progress until then. */
  schedule(): void {
    if (!this.isIdle) return
    this.isIdle = false
    this.#gateway.accounts.checkpointTimer.add(this.#onTimer)
  }

  writeNow(): void {
    writeCheckpoint(this.#gateway, this.#exchange)
  }

  readonly #onTimer = (): void => {
    this.isIdle = true
    this.writeNow()
  }
}

/** Writes the progress of an exchange to the ledger now, in case the process dies. */
export function writeCheckpoint({ accounts: { ledger } }: Gateway, { ledgerEntry }: Exchange): void {
  if (ledgerEntry) ledger?.updateDraft(ledgerEntry)
}
