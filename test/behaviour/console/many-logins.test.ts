import t from 'tap'
import { openConsoleFile } from '../../../src/console/store/console-file.ts'
import { SessionTable } from '../../../src/console/store/session-table.ts'

t.test('many logins with one key end no session of a user', async t => {
  const db = openConsoleFile(null)
  t.teardown(() => db.close())
  const sessions = new SessionTable(db)
  const digest = (n: number): Buffer => Buffer.alloc(32, String(n).padStart(8, '0'))
  sessions.open(digest(0), { kind: 'user', name: 'ops', credential: 'a' }, 0)
  for (let n = 1; n <= 10_100; n++) {
    sessions.open(digest(n), { kind: 'key', name: 'test', credential: 'b' }, 1)
  }
  t.ok(sessions.find(digest(0), 2, false), 'the session of the user is kept')
  t.ok(sessions.find(digest(10_100), 2, false), 'the last session of the key is kept')
})
