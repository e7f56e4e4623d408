import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openReader } from '../../src/ledger/query.ts'
import { request } from './load.ts'
import { draft, row } from './rows.ts'
import { watch } from './watched.ts'

const CHILD = fileURLToPath(import.meta.resolve('./load-child.ts'))

async function run(file: string, name: string, count: number): Promise<number | null> {
  const args = [CHILD, file, name, String(count)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'exit') as [number | null]
  return code
}

t.test('processes that share a file lose nothing and leave each other alone', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  ledger.open(draft('running'))
  await ledger.flush()
  const count = 1000
  const names = ['a', 'b', 'c']
  t.strictSame(await Promise.all(names.map(name => run(file, name, count))), [0, 0, 0])

  using reader = openReader(file)
  const rows = [...reader.rows({})]
  t.equal(rows.length, names.length * count)
  const byId = new Map(rows.map(one => [one.requestId, one]))
  const wanted = names.flatMap(name => Array.from({ length: count }, (_, n) => request(name, n).row))
  t.strictSame(wanted.filter(one => byId.get(one.requestId)?.costPico !== one.costPico), [])
  t.strictSame(reader.find('running'), [{ row: draft('running'), running: true }])
  ledger.close(row('running'))
  await ledger.flush()
  t.strictSame(reader.find('running'), [{ row: row('running'), running: false }])
  t.strictSame(watched.told, [])
})

t.test('what a killed process left is interrupted: for a reader at once, in the file after a start', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const args = [CHILD, file, 'dead', '1000000']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.resume()
  using reader = await opened(file)
  // Some have ended, so others run.
  while ([...reader.rows({})].length < 200) await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')

  const before = [...reader.rows({})]
  const sum = reader.sums({}, null)
  t.ok(before.some(({ end }) => end === 'interrupted'))
  t.equal(sum[0]?.requests, before.length)
  t.strictSame(reader.latest({}, 10), before.slice(-10))
  const interrupted = before.filter(({ end }) => end === 'interrupted')
  t.strictSame(reader.find(interrupted[0]?.requestId ?? ''), [{ row: interrupted[0], running: false }])

  await using watched = watch(file)
  await watched.ledger.ready()
  t.equal(watched.ledger.stats().interrupted, interrupted.length)
  t.strictSame([...reader.rows({})], before)
  t.strictSame(reader.sums({}, null), sum)
})

async function opened(file: string): Promise<ReturnType<typeof openReader>> {
  // The schema is there as soon as another ledger could open the file.
  await using watched = watch(file)
  await watched.ledger.ready()
  return openReader(file)
}
