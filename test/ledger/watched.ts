import { openLedger } from '../../src/ledger/write/threaded-ledger.ts'
import type { Ledger, LedgerOptions } from '../../src/ledger/write/ledger.ts'
import type { LedgerFailure, LedgerFailureCode } from '../../src/ledger/ledger-failure.ts'

export interface Watched extends AsyncDisposable {
  readonly ledger: Ledger
  /** All reported failures and recoveries, in order. */
  readonly told: readonly (LedgerFailure | 'recovered')[]
  /** Resolves when this is reported, or immediately if it was reported before. */
  heard(what: LedgerFailureCode | 'recovered'): Promise<void>
}

/** Opens a ledger on a real file, and records its failures and recoveries. */
export function watch(file: string, options: Partial<LedgerOptions> = {}): Watched {
  const told: (LedgerFailure | 'recovered')[] = []
  const waiting = new Map<string, (() => void)[]>()
  const tell = (what: LedgerFailure | 'recovered') => {
    told.push(what)
    const name = what === 'recovered' ? what : what.code
    for (const resolve of waiting.get(name) ?? []) resolve()
  }
  const ledger = openLedger({
    file,
    keep: null,
    ...options,
    onFailure: tell,
    onRecovered: () => tell('recovered'),
  })
  return {
    ledger,
    told,
    heard: async what => {
      if (told.some(one => (one === 'recovered' ? one : one.code) === what)) return
      // The ledger's thread does not keep the process alive, so the timer has to.
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const late = setTimeout(() => reject(new Error(`${what} was not reported`)), 30_000)
      waiting.set(what, [...waiting.get(what) ?? [], resolve])
      await promise.finally(() => clearTimeout(late))
    },
    [Symbol.asyncDispose]: () => ledger.shutdown(),
  }
}
