import t from 'tap'
import { CircuitHistory } from '../../../src/console/store/circuit-history.ts'
import { openConsoleFile } from '../../../src/console/store/console-file.ts'

const change = (at: number, state: 'open' | 'closed', model: string | null = 'm', worker = 0) => ({
  at, upstream: 'up', model, state, failures: 3, worker, first: { at, reason: 'connect_timeout', requestId: 'r' }, last: null,
})

t.test('after a restart, a read of a period returns its changes and the last earlier change of each worker and model', async t => {
  const file = `${t.testdir()}/console.db`
  const first = openConsoleFile(file)
  const history = new CircuitHistory(first)
  const changes = [
    change(1, 'open'), change(2, 'closed'), change(3, 'open', 'other'), change(4, 'open', null), change(5, 'open', 'm', 2), change(10, 'open'),
    change(20, 'closed'),
  ]
  for (const each of changes) history.add(each)
  history.add({ ...change(10, 'open'), upstream: 'else' })
  first.close()
  const db = openConsoleFile(file)
  t.teardown(() => db.close())
  t.strictSame(new CircuitHistory(db).read('up', 10, 20), changes.slice(1, 6))
  t.strictSame(new CircuitHistory(db).read('nothing', 0, 100), [])
})

t.test('the history keeps the last 10,000 changes', async t => {
  const db = openConsoleFile(null)
  t.teardown(() => db.close())
  const history = new CircuitHistory(db)
  db.exec('BEGIN')
  for (let n = 1; n <= 10_300; n++) history.add(change(n, n % 2 === 0 ? 'open' : 'closed'))
  db.exec('COMMIT')
  t.equal(history.read('up', 0, 20_000)[0]?.at, 301)
})
