import { writeSync } from 'node:fs'
import type { LedgerEntry } from '../../../src/ledger/entry.ts'
import { openLedger } from '../../../src/ledger/write/threaded-ledger.ts'
import { request } from './load.ts'
import type { Report } from './load.ts'

/*
 * Writes to a ledger until it is killed or has ended COUNT requests, and
 * reports each entry on its standard output. Arguments: FILE, NAME, COUNT.
 */

const [file = '', name = '', count = '0'] = process.argv.slice(2)
const most = Number(count)
const ledger = openLedger({
  file,
  keep: null,
  onFailure: trouble => writeSync(2, `${JSON.stringify(trouble)}\n`),
  onRecovered: () => undefined,
})

let reports = ''

function report(what: Report['what'], n: number): void {
  reports += `${JSON.stringify({ what, n } satisfies Report)}\n`
}

/** Running requests, each with the turn of its next step. */
const running: { n: number; next: number; step: 0 | 1; entry: LedgerEntry }[] = []
/** Number of the current checkpoint of each request, from 0. */
const steps = new Map<number, number>()
let turn = 0
let started = 0
let ended = 0

function proceed(): void {
  turn += 1
  for (let k = 0; k < 4 && started < most; k += 1) {
    const n = started++
    report('draft 0', n)
    const entry = ledger.open(() => request(name, n).drafts[steps.get(n) ?? 0]!)
    // One of eight requests runs for long.
    running.push({ n, next: turn + (n % 8 === 0 ? 150 : n % 13), step: 0, entry })
  }
  for (let at = running.length - 1; at >= 0; at -= 1) {
    const { n, next, step, entry } = running[at]!
    if (next > turn) continue
    if (step === 0 && n % 8 === 0) {
      report('draft 1', n)
      steps.set(n, 1)
      ledger.updateDraft(entry)
      running[at] = { n, next: turn + 150, step: 1, entry }
    } else {
      report('row', n)
      ledger.close(request(name, n).row, entry)
      running.splice(at, 1)
      ended += 1
    }
  }
  // One synchronous write per turn, so that the reports survive a kill.
  if (reports !== '') writeSync(1, reports)
  reports = ''
  if (ended < most) setTimeout(proceed, 1)
  else void ledger.shutdown()
}

await ledger.ready()
proceed()
