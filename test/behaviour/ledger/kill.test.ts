import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import type { EndReason, LedgerRow } from '../../../src/ledger/row.ts'
import { watch } from '../../ledger/watched.ts'
import { request } from './load.ts'
import type { Report } from './load.ts'

const ROUNDS = 12

/** Runs the load, and kills it `after` ms after its first report. @returns its reports, in order */
async function killed(file: string, name: string, after: number): Promise<Report[]> {
  const script = fileURLToPath(import.meta.resolve('./load-child.ts'))
  const args = [script, file, name, '1000000']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    if (text === '') setTimeout(() => child.kill('SIGKILL'), after)
    text += chunk
  })
  await once(child, 'close')
  // Without the last line, which may be incomplete.
  return text.slice(0, text.lastIndexOf('\n')).split('\n').map(line => JSON.parse(line) as Report)
}

t.test('after kill -9 under load, only the last rows are missing, and running requests are recorded as interrupted', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const expected = new Map<string, Report[]>()
  for (let round = 0; round < ROUNDS; round += 1) {
    expected.set(`p${round}`, await killed(file, `p${round}`, 150 + Math.random() * 700))
  }
  // The restart, which settles the running requests of the killed process.
  await using watched = watch(file)
  watched.ledger.close(request('after', 0).row)
  await watched.ledger.flush()
  t.strictSame(watched.told, [])

  using reader = openReader(file)
  const rows = [...reader.rows({})].filter(({ requestId }) => !requestId.startsWith('after'))
  const byId = new Map(rows.map(row => [row.requestId, row]))
  t.equal(byId.size, rows.length, 'no row twice')
  const ends = new Set([...expected].flatMap(([name, reports]) => check(t, name, reports, byId)))
  t.ok(ends.has('complete') && ends.has('interrupted'), 'it was under load')
  t.equal(byId.size, 0, 'the file has no row that was never written')
  const left = readdirSync(join(file, '..')).filter(entry => entry.includes('-live-'))
  t.equal(left.length, 1, 'the marks of dead processes are removed')
})

function check(t: Test, name: string, reports: readonly Report[], rows: Map<string, LedgerRow>): EndReason[] {
  /** Places in the reports of the first checkpoint, the later checkpoint and the row of each request. */
  const given = new Map<number, Partial<Record<Report['what'], number>>>()
  for (const [place, { what, n }] of reports.entries()) given.set(n, { ...given.get(n), [what]: place })
  const found = new Map<number, LedgerRow | undefined>()
  for (const n of given.keys()) {
    const { requestId } = request(name, n).row
    found.set(n, rows.get(requestId))
    rows.delete(requestId)
  }
  const isFinal = (n: number) => isDeepStrictEqual(found.get(n), request(name, n).row)
  /** All entries that were reported before this place are in the file. */
  const written = Math.max(...[...given].map(([n, { row }]) => (row !== undefined && isFinal(n) ? row : -1)))
  const wrong = [...given].filter(([n, places]) => {
    const isEnded = places.row !== undefined
    const isWritten = (what: Report['what']) => (places[what] ?? Infinity) <= written
    const same = (draft: number) => isDeepStrictEqual(found.get(n), request(name, n).drafts[draft])
    const mayBe = [
      isEnded && isFinal(n),
      !isWritten('row') && places['draft 1'] !== undefined && same(1),
      !isWritten('row') && (isEnded || !isWritten('draft 1')) && same(0),
      // The row is queued at the end; a waiting checkpoint of the request moves with the row.
      !isWritten('row') && (isEnded || !isWritten('draft 0')) && found.get(n) === undefined,
    ]
    return !mayBe.includes(true)
  })
  t.strictSame(wrong.slice(0, 3), [], `${name}: written up to ${written} of ${reports.length}`)
  return [...found.values()].flatMap(row => row?.end ?? [])
}
