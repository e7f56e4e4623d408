import type { Clock, Timer } from '../../base/clock.ts'
import type { Ledger } from '../../ledger/write/ledger.ts'
import type { Exchange } from '../exchange/exchange.ts'

interface CheckpointHost {
  readonly accounts: { readonly ledger: Ledger | null, readonly checkpointTimer: CheckpointTimer }
}

/** Writes the progress of an exchange to the ledger, in case the process dies. */
export class LedgerCheckpoint {
  readonly #gateway: CheckpointHost
  readonly #exchange: Exchange
  /** No write is due, and there is a ledger to write to. */
  isIdle: boolean

  constructor(gateway: CheckpointHost, exchange: Exchange) {
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

export function writeCheckpoint({ accounts: { ledger } }: CheckpointHost, { ledgerEntry }: Exchange): void {
  if (ledgerEntry) ledger?.updateDraft(ledgerEntry)
}

/** Milliseconds from the first change of a stream to its checkpoint. */
const DELAY_MS = 1_000
/** Milliseconds: checkpoints that are due so soon after the first are written together. */
const COALESCE_MS = 20

/** Writes checkpoints a second after a stream changes, with one timer for all. A stream that does not change costs nothing. */
export class CheckpointTimer {
  readonly #clock: Pick<Clock, 'monotonic' | 'setTimeout'>
  /** Checkpoints in the order in which they are due: all have the same delay. */
  #waiting: { readonly at: number; readonly write: () => void }[] = []
  #timer: Timer | null = null

  constructor(clock: Pick<Clock, 'monotonic' | 'setTimeout'>) {
    this.#clock = clock
  }

  add(write: () => void): void {
    this.#waiting.push({ at: this.#clock.monotonic() + DELAY_MS, write })
    this.#timer ??= this.#clock.setTimeout(this.#write, DELAY_MS)
  }

  close(): void {
    this.#timer?.cancel()
    this.#waiting = []
  }

  readonly #write = (): void => {
    const now = this.#clock.monotonic()
    const first = this.#waiting.findIndex(({ at }) => at > now + COALESCE_MS)
    const due = this.#waiting.splice(0, first === -1 ? this.#waiting.length : first)
    const next = this.#waiting[0]
    this.#timer = next === undefined ? null : this.#clock.setTimeout(this.#write, next.at - now)
    for (const { write } of due) write()
  }
}
