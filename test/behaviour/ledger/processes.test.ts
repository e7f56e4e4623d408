import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import { draft, row } from '../../ledger/rows.ts'
import { watch } from '../../ledger/watched.ts'
import { request } from './load.ts'

const CHILD = fileURLToPath(import.meta.resolve('./load-child.ts'))
const QUERY = import.meta.resolve('../../../src/ledger/read/file-reader.ts')

async function run(file: string, name: string, count: number): Promise<number | null> {
  const args = [CHILD, file, name, String(count)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'exit') as [number | null]
  return code
}

t.test('processes that share a ledger file write every row once', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  const entry = ledger.open(() => draft('running'))
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
  ledger.close(row('running'), entry)
  await ledger.flush()
  t.strictSame(reader.find('running'), [{ row: row('running'), running: false }])
  t.strictSame(watched.told, [])
})

t.test('after a process is killed, a reader sees its requests as interrupted at once', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const args = [CHILD, file, 'dead', '1000000']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.resume()
  using reader = await opened(file)
  // After 200 requests have ended, other requests are running.
  while ([...reader.rows({})].length < 200) await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')

  const before = [...reader.rows({})]
  const sum = reader.sums({}, [])
  t.ok(before.some(({ end }) => end === 'interrupted'))
  t.equal(sum[0]?.requests, before.length)
  t.strictSame(reader.latest({}, 10), before.slice(-10))
  const interrupted = before.filter(({ end }) => end === 'interrupted')
  t.strictSame(reader.find(interrupted[0]?.requestId ?? ''), [{ row: interrupted[0], running: false }])

  await using watched = watch(file)
  await watched.ledger.ready()
  t.equal(watched.ledger.stats().interrupted, interrupted.length)
  t.strictSame([...reader.rows({})], before)
  t.strictSame(reader.sums({}, []), sum)
})

async function opened(file: string): Promise<ReturnType<typeof openReader>> {
  // The file has its schema before another ledger can open the file.
  await using watched = watch(file)
  await watched.ledger.ready()
  return openReader(file)
}

t.test('without write permission requests continue, and their rows are written once the permission is granted', async t => {
  const dir = t.testdir({ data: {} })
  const data = join(dir, 'data')
  const file = join(data, 'gateway.db')
  await watch(file).ledger.shutdown()
  chmodSync(file, 0o444)
  chmodSync(data, 0o555)
  // Not as root, which may write everywhere.
  const user = process.getuid?.() === 0 ? { uid: 65_534 } : {}
  const args = [CHILD, file, 'a', '1000']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], ...user })
  const exit = once(child, 'exit')
  const [trouble] = await once(child.stderr.setEncoding('utf8'), 'data') as [string]
  t.match(trouble, /"code":"unwritable"/)
  await once(child.stdout, 'data')
  child.stdout.resume()
  chmodSync(data, 0o777)
  chmodSync(file, 0o666)
  t.strictSame(await exit, [0, null])
  using reader = openReader(file)
  t.equal(reader.sums({}, [])[0]?.requests, 1000)
})

/** @returns the rows that a user without write access to the file and its directory reads */
async function readByOther(dir: string): Promise<string> {
  for (const name of readdirSync(dir)) chmodSync(join(dir, name), 0o444)
  chmodSync(dir, 0o555)
  const code = `import { openReader } from ${JSON.stringify(QUERY)}
    try {
      console.log(openReader(process.argv[1]).sums({}, [])[0].requests)
    } catch (error) {
      console.log(error.message)
    }`
  const user = process.getuid?.() === 0 ? { uid: 65_534 } : {}
  // `env -i` removes the variables that the test runner adds to each process.
  const args = ['-i', process.execPath, '--input-type=module', '--eval', code, join(dir, 'gateway.db')]
  const child = spawn('env', args, { stdio: ['ignore', 'pipe', 'inherit'], ...user })
  const said = await text(child.stdout)
  chmodSync(dir, 0o755)
  return said
}

t.test('a process without write permission can read all rows, also the rows of a killed gateway', async t => {
  const dir = t.testdir({ data: {}, killed: {} })
  const file = join(dir, 'data', 'gateway.db')
  const { ledger } = watch(file)
  ledger.close(row('r1'))
  await ledger.shutdown()
  using db = new DatabaseSync(file)
  db.exec('CREATE TABLE other (id)')
  for (const name of ['gateway.db', 'gateway.db-wal']) {
    copyFileSync(join(dir, 'data', name), join(dir, 'killed', name))
  }
  db.close()
  t.equal(await readByOther(join(dir, 'data')), '1\n')
  t.match(await readByOther(join(dir, 'killed')), /as the user that the gateway runs as/)
})
