import t from 'tap'
import { openConsoleFile } from '../../../src/console/store/console-file.ts'
import { ReloadHistory } from '../../../src/console/store/reload-history.ts'

const BEFORE = 'log: { level: info }\n'
const reload = (at: number, text: string | null = 'log: { level: warn }\n') =>
  ({ at, applied: true, by: 'SIGHUP', before: BEFORE, text, changes: ['log: changed'], problems: [] })

t.test('the reports of one reload by several workers are stored as one entry in the file', async t => {
  const file = `${t.testdir()}/console.db`
  const [one, two] = [openConsoleFile(file), openConsoleFile(file)]
  t.equal(new ReloadHistory(one).add(reload(1_000)), true)
  t.equal(new ReloadHistory(two).add(reload(1_300)), false)
  t.equal(new ReloadHistory(two).add(reload(60_000)), true, 'a later reload with the same text is another entry')
  t.equal(new ReloadHistory(two).add(reload(60_100, null)), true, 'a reload with another text at about the same time is another entry')
  one.close()
  two.close()
  const db = openConsoleFile(file)
  t.teardown(() => db.close())
  t.match(new ReloadHistory(db).read(), [
    { at: 60_100, diff: null },
    { at: 60_000, by: 'SIGHUP', applied: true, changes: ['log: changed'], diff: [{ kind: 'removed' }, { kind: 'added', text: 'log: { level: warn }' }] },
    { at: 1_000 },
  ])
})

t.test('the last 20 reloads are kept', async t => {
  const db = openConsoleFile(null)
  t.teardown(() => db.close())
  const history = new ReloadHistory(db)
  for (let n = 1; n <= 30; n++) history.add(reload(n * 10_000))
  t.same(history.read().map(({ at }) => at / 10_000), Array.from({ length: 20 }, (_, n) => 30 - n))
})
