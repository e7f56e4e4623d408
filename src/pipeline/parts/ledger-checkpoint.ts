import type { Clock, Timer } from '../../base/clock.ts'
import type { Ledger } from '../../ledger/write/ledger.ts'
import type { Exchange } from '../exchange/exchange.ts'

interface CheckpointHost {
  readonly accounts: { readonly ledger: Ledger | null, readonly checkpointTimer: CheckpointTimer }
}

/** Writes ledger checkpoints of one exchange, from which the ledger row is completed if the process dies. */
export class LedgerCheckpoint {
  readonly #gateway: CheckpointHost
  readonly #exchange: Exchange
  /** There is a ledger, and no checkpoint is scheduled. */
  isIdle: boolean

  constructor(gateway: CheckpointHost, exchange: Exchange) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.isIdle = exchange.ledgerEntry !== null
  }

  /** Schedules a checkpoint in one second, with the progress at that time. */
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
/** Milliseconds. Checkpoints that are due within this time after the first one are written together. */
const COALESCE_MS = 20

/** Writes each checkpoint one second after it is added, with one timer for all checkpoints. */
export class CheckpointTimer {
  readonly #clock: Pick<Clock, 'monotonic' | 'setTimeout'>
  /** Checkpoints in the order in which they were added and are due: the delay is the same for all. */
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
