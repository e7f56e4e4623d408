import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { openReader } from '../../../src/ledger/query.ts'
import type { EndReason, LedgerRow } from '../../../src/ledger/row.ts'
import { watch } from '../../ledger/watched.ts'
import { request } from './load.ts'
import type { Report } from './load.ts'

const ROUNDS = 12
/** What the ledger promises, in ms. */
const PROMISE = 100
/** A machine that lets the process wait for longer than this lets the ledger wait too. */
const STALL = 40

interface Killed {
  readonly reports: readonly Report[]
  readonly at: number
}

/** Runs the load and kills it so many ms after its first report. */
async function killed(file: string, name: string, after: number): Promise<Killed> {
  const script = fileURLToPath(import.meta.resolve('./load-child.ts'))
  const args = [script, file, name, '1000000']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  let at = 0
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    if (text === '') {
      setTimeout(() => {
        at = Date.now()
        child.kill('SIGKILL')
      }, after)
    }
    text += chunk
  })
  await once(child, 'close')
  // The last line may have been cut.
  const lines = text.slice(0, text.lastIndexOf('\n')).split('\n')
  return { reports: lines.map(line => JSON.parse(line) as Report), at }
}

/** How long ago something must have happened to be due in the ledger. */
function due({ reports, at }: Killed): number {
  const recent = [...reports.map(report => report.at).filter(time => time > at - 500 && time < at), at]
  const stall = Math.max(...recent.map((time, n) => time - (recent[n - 1] ?? time)))
  return PROMISE + (stall > STALL ? stall : 0)
}

t.test('kill -9 under load loses nothing that ended 100 ms before, and interrupts the rest', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const expected = new Map<string, Killed>()
  for (let round = 0; round < ROUNDS; round += 1) {
    expected.set(`p${round}`, await killed(file, `p${round}`, 150 + Math.random() * 700))
  }
  // The restart, which settles what the last one left.
  await using watched = watch(file)
  watched.ledger.close(request('after', 0).row)
  await watched.ledger.flush()
  t.strictSame(watched.told, [])

  using reader = openReader(file)
  const rows = [...reader.rows({})].filter(({ requestId }) => !requestId.startsWith('after'))
  const byId = new Map(rows.map(row => [row.requestId, row]))
  t.equal(byId.size, rows.length, 'no row twice')
  const ends = new Set([...expected].flatMap(([name, run]) => check(t, name, run, byId)))
  t.ok(ends.has('complete') && ends.has('interrupted'), 'it was under load')
  t.equal(byId.size, 0, 'no row that was never given')
  const left = readdirSync(join(file, '..')).filter(entry => entry.includes('-live-'))
  t.equal(left.length, 1, 'the marks of the dead are gone')
})

function check(t: Test, name: string, run: Killed, rows: Map<string, LedgerRow>): EndReason[] {
  const patience = due(run)
  const said = new Map<number, Partial<Record<Report['what'], number>>>()
  for (const { what, n, at } of run.reports) said.set(n, { ...said.get(n), [what]: at })
  const wrong: unknown[] = []
  const ends: EndReason[] = []
  for (const [n, times] of said) {
    const { drafts, row } = request(name, n)
    const found = rows.get(row.requestId)
    rows.delete(row.requestId)
    const old = (what: Report['what']) => (times[what] ?? Infinity) < run.at - patience
    const same = (wanted: LedgerRow | undefined) => isDeepStrictEqual(found, wanted)
    const mayBe = [
      times.row !== undefined && same(row),
      !old('row') && times['draft 1'] !== undefined && same(drafts[1]),
      !old('row') && !old('draft 1') && same(drafts[0]),
      !old('draft 0') && found === undefined,
    ]
    if (!mayBe.includes(true)) wrong.push({ n, ages: agesOf(times, run.at), found })
    if (found !== undefined) ends.push(found.end)
  }
  t.strictSame(wrong.slice(0, 3), [], `${name}: ${ends.length} rows of ${said.size} requests, ${patience} ms`)
  return ends
}

function agesOf(times: Partial<Record<Report['what'], number>>, at: number): Record<string, number> {
  return Object.fromEntries(Object.entries(times).map(([what, time]) => [what, at - time]))
}
