import { hash } from 'node:crypto'
import { chownSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, backup } from 'node:sqlite'
import t from 'tap'
import type { Test } from 'tap'
import { KeyFile, keyFileOf } from '../../src/auth/key-file.ts'
import { readBlocks, readKeys } from '../../src/auth/key-reader.ts'
import { MIGRATIONS } from '../../src/auth/key-schema.ts'
import { KeyStore } from '../../src/auth/key-store.ts'
import type { KeyChange } from '../../src/auth/key-store.ts'
import type { Key, Limits } from '../../src/config/key-types.ts'
import { FakeClock } from '../support/fake-clock.ts'

const LIMITS: Limits = {
  requestsPerMinute: 60,
  tokensPerMinute: null,
  concurrent: 3,
  budget: { usd: '0.10', per: 'month' },
  models: new Map([
    ['gpt-*', { requestsPerMinute: null, tokensPerMinute: 5, concurrent: null, budget: null }],
  ]),
}

const BY = { actor: 'test', address: null }

function revoke(store: KeyFile, id: number, now: number): void {
  const found = store.find('id', id)
  if (found === null) throw new Error(`there is no key ${id}`)
  store.revoke(found, now, BY)
}

function key(name: string, more: Partial<Key> = {}): Key {
  return { name, digest: hash('sha256', `secret of ${name}`, 'buffer'), models: null, limits: null, ...more }
}

/** A running KeyStore, and `look`, which makes the store read its file. */
function open(t: Test, file: string) {
  const clock = new FakeClock()
  const troubles: string[] = []
  const changes: KeyChange[] = []
  let recoveries = 0
  const store = new KeyStore({
    file,
    clock,
    onFailure: why => troubles.push(why),
    onRecovered: () => recoveries++,
  })
  t.teardown(() => store.close())
  store.subscribe(change => changes.push(change))
  const names = () => store.keys().map(({ name }) => name).sort().join(' ')
  return {
    store, names, clock, troubles, changes, recoveries: () => recoveries, look: () => clock.advance(1_000),
  }
}

t.test('the key store is in the directory of the ledger, and only its owner can read the files', async t => {
  const file = keyFileOf(join(t.testdir({}), 'data', 'ledger.db'))
  t.match(file, /data\/keys\.db$/)
  const before = process.umask(0)
  t.teardown(() => process.umask(before))
  using store = new KeyFile(file)
  store.create(key('a'), 1, BY)
  for (const part of ['', '-wal', '-shm']) {
    t.equal(statSync(file + part).mode & 0o777, 0o600, `keys.db${part}`)
  }
})

const skip = process.getuid?.() === 0 ? false : 'only root gives files away'
t.test('files that root creates get the owner of the directory', { skip }, async t => {
  const directory = t.testdir({})
  chownSync(directory, 65_534, 65_533)
  const file = keyFileOf(join(directory, 'ledger.db'))
  using store = new KeyFile(file)
  store.create(key('a'), 1, BY)
  for (const part of ['', '-wal', '-shm']) {
    t.match(statSync(file + part), { uid: 65_534, gid: 65_533, mode: 0o100600 }, `keys.db${part}`)
  }
})

t.test('stored keys are read back with all their fields', async t => {
  const file = join(t.testdir({}), 'keys.db')
  using store = new KeyFile(file)
  const all = [key('a', { models: ['x', 'y-*'], limits: LIMITS }), key('none', { models: [] }), key('b')]
  for (const [at, one] of all.entries()) store.create(one, 100 + at, BY)
  revoke(store, 2, 500)
  t.strictSame(readKeys(file), [
    { id: 1, key: all[0], createdAt: 100, revokedAt: null },
    { id: 2, key: all[1], createdAt: 101, revokedAt: 500 },
    { id: 3, key: all[2], createdAt: 102, revokedAt: null },
  ])
  t.strictSame(readKeys(join(t.testdir({}), 'nowhere.db')), [])
})

t.test('the key store does not contain the values of keys', async t => {
  const file = join(t.testdir({}), 'keys.db')
  using store = new KeyFile(file)
  store.create(key('a'), 1, BY)
  using db = new DatabaseSync(file)
  t.notMatch(JSON.stringify(db.prepare('SELECT *, hex(digest) AS h FROM keys').all()), 'secret of')
})

t.test('two active keys cannot have the same name, and the name of a revoked key can be used again', async t => {
  using store = new KeyFile(join(t.testdir({}), 'keys.db'))
  store.create(key('a'), 1, BY)
  const again = key('a', { digest: hash('sha256', 'another', 'buffer') })
  t.throws(() => store.create(again, 2, BY), { code: 'taken' })
  revoke(store, 1, 3)
  store.create(again, 4, BY)
  t.match(store.find('name', 'a'), { id: 2, revokedAt: null })
  t.match(store.find('id', 1), { id: 1, revokedAt: 3 })
  t.match(store.find('digest', key('a').digest), { id: 1 })
  revoke(store, 1, 9)
  t.match(store.find('id', 1), { revokedAt: 3 }, 'a second revocation does not change the time')
  revoke(store, 2, 12)
  t.match(store.find('name', 'a'), { id: 2, revokedAt: 12 }, '`find` returns the last revoked key with the name')
  t.equal(store.find('name', 'b'), null)
})

t.test('a running KeyStore reads changes of other processes and reports each change once', async t => {
  const file = join(t.testdir({}), 'keys.db')
  const running = open(t, file)
  using other = new KeyFile(file)
  other.create(key('a', { limits: LIMITS }), 1, BY)
  running.look()
  t.equal(running.names(), 'a')
  t.match(running.store.keys()[0], { name: 'a', limits: LIMITS })
  other.create(key('b'), 2, BY)
  revoke(other, 1, 3)
  running.look()
  running.look()
  t.equal(running.names(), 'b')
  t.strictSame(running.changes.map(({ added, removed }) => [
    added.map(k => k.name), removed.map(k => k.name),
  ]), [
    [['a'], []],
    [['b'], ['a']],
  ])
  t.strictSame(running.troubles, [])
})

t.test('waitUntilPublished returns true after each live process has read the change', async t => {
  const file = join(t.testdir({}), 'keys.db')
  const first = open(t, file)
  const second = open(t, file)
  using other = new KeyFile(file)
  other.create(key('a'), 1, BY)
  t.equal(other.waitUntilPublished(0), false)
  first.look()
  t.equal(other.waitUntilPublished(0), false, 'the second process has not read the change')
  second.look()
  t.equal(other.waitUntilPublished(0), true)
  t.equal(second.names(), 'a')
  revoke(other, 1, 2)
  first.look()
  t.equal(other.waitUntilPublished(0), false)
  second.store.close()
  t.equal(other.waitUntilPublished(0), true)
  t.equal(first.names(), '')
})

t.test('two writers of the same file do not fail', async t => {
  const file = join(t.testdir({}), 'keys.db')
  using first = new KeyFile(file)
  using second = new KeyFile(file)
  for (let i = 0; i < 50; i++) (i % 2 ? first : second).create(key(`k${i}`), i, BY)
  t.equal(readKeys(file).length, 50)
})

t.test('a store that is locked at the start is reported once, and read after the lock ends', async t => {
  const file = join(t.testdir({}), 'keys.db')
  {
    using other = new KeyFile(file)
    other.create(key('a'), 1, BY)
  }
  const locker = new DatabaseSync(file)
  locker.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
  const running = open(t, file)
  running.look()
  t.equal(running.names(), '')
  t.match(running.troubles, [/locked/])
  t.equal(running.troubles.length, 1)
  locker.exec('COMMIT')
  locker.close()
  running.look()
  t.equal(running.names(), 'a')
  t.equal(running.recoveries(), 1)
})

t.test('a writer does not block readers', async t => {
  const file = join(t.testdir({}), 'keys.db')
  const running = open(t, file)
  using writer = new DatabaseSync(file)
  writer.exec('BEGIN IMMEDIATE')
  running.look()
  t.strictSame(running.troubles, [])
  t.strictSame(readKeys(file), [])
})

t.test('known keys stay active after the file of the store is deleted or overwritten', async t => {
  const file = join(t.testdir({}), 'keys.db')
  {
    using other = new KeyFile(file)
    other.create(key('a'), 1, BY)
  }
  const running = open(t, file)
  renameSync(file, `${file}.aside`)
  running.look()
  t.strictSame(running.troubles, ['the file does not exist any more'])
  writeFileSync(file, 'x'.repeat(8_192))
  running.look()
  t.match(running.troubles[1], /not a database/)
  t.equal(running.names(), 'a')
  rmSync(file)
  renameSync(`${file}.aside`, file)
  running.look()
  t.equal(running.names(), 'a')
  t.equal(running.recoveries(), 1)
})

t.test('after the file of the store is replaced, only the keys and blocks of the new file are active', async t => {
  const dir = t.testdir({})
  const file = join(dir, 'keys.db')
  const other = join(dir, 'other.db')
  using first = new KeyFile(file)
  first.create(key('a'), 1, BY)
  first.create(key('b'), 2, BY)
  first.block(key('blocked'), 3, BY)
  {
    using store = new KeyFile(other)
    store.create(key('b'), 1, BY)
  }
  using saved = new DatabaseSync(other)
  await backup(saved, `${other}.copy`)
  const running = open(t, file)
  // The -wal and -shm files of SQLite belong to the replaced store.
  for (const part of ['-wal', '-shm']) rmSync(file + part)
  renameSync(`${other}.copy`, file)
  running.look()
  t.equal(running.names(), 'b')
  t.strictSame(running.store.blocked(), [])
  using present = new KeyFile(file)
  present.create(key('c'), 4, BY)
  running.look()
  t.equal(running.names(), 'b c')
  const [same] = running.store.keys()
  await backup(saved, file)
  running.look()
  t.equal(running.names(), 'b')
  t.equal(running.store.keys()[0], same, 'an unchanged key stays the same object')
  t.match(running.changes.at(-1), { added: { length: 0 }, removed: { length: 1, 0: { name: 'c' } } })
  t.strictSame(running.troubles, [])
})

t.test('a store that is invalid at the start is reported and has no keys', async t => {
  const file = join(t.testdir({ 'keys.db': 'x'.repeat(8_192) }), 'keys.db')
  const running = open(t, file)
  t.equal(running.names(), '')
  t.match(running.troubles, [/not a database/])
  t.throws(() => new KeyFile(file), /not a database/)
  t.throws(() => readKeys(file), /not a database/)
})

t.test('an unreadable row does not affect other keys', async t => {
  const file = join(t.testdir({}), 'keys.db')
  using other = new KeyFile(file)
  other.create(key('a'), 1, BY)
  other.create(key('odd'), 2, BY)
  using db = new DatabaseSync(file)
  for (const limits of [
    '{"requests_per_hour":1}', '{"concurrent":-1}', '{"concurrent":1.5}', '{"concurrent":"1"}',
    '{"budget":{"usd":5,"per":"day"}}', '{"budget":{"usd":"5","per":"year"}}', '[]', '"x"',
    '{"models":{"*":{"requests_per_hour":1}}}',
  ]) {
    db.prepare("UPDATE keys SET limits = ? WHERE name = 'odd'").run(limits)
    const running = open(t, file)
    t.equal(running.names(), 'a', limits)
    t.match(running.troubles, [/the key "odd" cannot be read/])
  }
  for (const models of ['[1]', '"gpt-*"', '{}']) {
    db.prepare("UPDATE keys SET limits = NULL, models = ? WHERE name = 'odd'").run(models)
    t.equal(open(t, file).names(), 'a', models)
  }
})

t.test('a key whose row becomes unreadable keeps its limits', async t => {
  const file = join(t.testdir({}), 'keys.db')
  using other = new KeyFile(file)
  other.create(key('a', { limits: LIMITS }), 1, BY)
  const running = open(t, file)
  using db = new DatabaseSync(file)
  db.prepare('UPDATE keys SET limits = ?').run('{"requests_per_hour":1}')
  running.look()
  t.match(running.troubles, [/the key "a" cannot be read/])
  t.match(running.store.keys(), [{ name: 'a', limits: LIMITS }])
  revoke(other, 1, 3)
  running.look()
  t.strictSame(running.store.keys(), [], 'a key with an unreadable row can be revoked')
})

t.test('files of other programs and of newer versions of the gateway are refused', async t => {
  const dir = t.testdir({})
  const foreign = join(dir, 'foreign.db')
  {
    using db = new DatabaseSync(foreign)
    db.exec('CREATE TABLE keys (a)')
  }
  t.throws(() => new KeyFile(foreign), { code: 'foreign' })
  t.throws(() => readKeys(foreign), { code: 'foreign' })
  const newer = join(dir, 'newer.db')
  new KeyFile(newer).close()
  {
    using db = new DatabaseSync(newer)
    db.exec('PRAGMA user_version = 99')
  }
  t.throws(() => new KeyFile(newer), { code: 'newer', message: /schema version 99/ })
  const empty = join(dir, 'empty.db')
  writeFileSync(empty, '')
  t.throws(() => readKeys(empty), { code: 'outdated' })
  new KeyFile(empty).close()
  t.strictSame(readKeys(empty), [])
})

t.test('a running KeyStore reads blocks and unblocks of other processes, and reports each once', async t => {
  const file = join(t.testdir({}), 'keys.db')
  const { store, changes, look, clock } = open(t, file)
  using other = new KeyFile(file)
  const [one, two] = [key('one'), key('two')]
  t.equal(other.block(one, 1, BY), true)
  t.equal(other.block(one, 2, BY), false, 'the key is already blocked')
  look()
  t.same(store.blocked(), [one.digest])
  t.same(changes.map(({ blocked, unblocked }) => [blocked.length, unblocked.length]), [[1, 0]])
  t.equal(other.unblock(two, 3, BY), false)
  t.equal(other.unblock(one, 4, BY), true)
  t.equal(other.block(two, 5, BY), true)
  look()
  t.same(store.blocked(), [two.digest])
  t.same(changes.at(-1)?.unblocked, [one.digest])
  other.create(key('three'), 6, BY)
  look()
  t.match(
    changes.at(-1), { added: [{ name: 'three' }], blocked: { length: 0 }, unblocked: { length: 0 } },
    'a new key does not repeat earlier blocks',
  )
  t.equal(other.waitUntilPublished(0), true)
  t.same(readBlocks(file).map(({ name, blockedAt }) => [name, blockedAt]), [['two', 5]])
  t.equal(clock.pending > 0, true)
  // A KeyStore that starts later has the same block.
  t.same(open(t, file).store.blocked(), [two.digest])
  t.equal(other.block(one, 7, BY), true, 'a key that was unblocked can be blocked again')
  t.equal(other.unblock(two, 8, BY), true)
  look()
  t.same(store.blocked(), [one.digest], 'another blocked key stays blocked')
})

t.test('a changed key replaces the previous key, and the audit list has the creation and the change', async t => {
  const file = join(t.testdir({}), 'keys.db')
  const { store, changes, look } = open(t, file)
  using other = new KeyFile(file)
  other.create(key('a'), 1, BY)
  look()
  const found = other.find('name', 'a')
  if (found === null) throw new Error('it was made')
  other.change(found, { models: ['gpt-*'], limits: LIMITS }, 'models: gpt-*', 2, BY)
  look()
  t.match(store.keys(), [{ name: 'a', models: ['gpt-*'], limits: { concurrent: 3 } }])
  t.match(changes.at(-1), {
    added: [{ name: 'a', models: ['gpt-*'] }], removed: [{ name: 'a', models: null }],
  })
  const entries = other.audit(null, 10)
  t.match(entries, [
    { action: 'key.changed', subject: 'a', detail: 'models: gpt-*', at: 2 },
    { action: 'key.created', subject: 'a', at: 1 },
  ])
  t.strictSame(other.audit(entries[0]?.id ?? 0, 10), entries.slice(1))
  other.change(found, { models: null }, 'models: all', 3, BY)
  look()
  t.match(store.keys(), [{ models: null, limits: { concurrent: 3 } }], 'members that the change does not name stay')
  other.change(found, { limits: null }, 'limits: none', 4, BY)
  other.change(found, { models: ['fast'] }, 'models: fast', 5, BY)
  look()
  t.match(store.keys(), [{ models: ['fast'], limits: null }])
})

t.test('each hundredth event deletes all but the latest 10,000 audit events of its action', async t => {
  using store = new KeyFile(join(t.testdir({}), 'keys.db'))
  store.create(key('a'), 1, BY)
  const db = new DatabaseSync(join(t.testdirName, 'keys.db'))
  db.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10098)
    INSERT INTO audit (at, actor, action) SELECT i, 'console: unknown', 'login.refused' FROM n`)
  // The 10,100th event, because the creation of the key is the first.
  store.recordAuditEvent({
    at: 20_000, actor: 'console: unknown', address: null,
    action: 'login.refused', subject: null, detail: null,
  })
  const counts = db.prepare(
    'SELECT action, count(*) AS n, min(at) AS first FROM audit GROUP BY action ORDER BY action',
  ).all()
  db.close()
  t.match(counts, [{ action: 'key.created', n: 1 }, { action: 'login.refused', n: 10_000, first: 100 }])
})

t.test('a store with schema version 1 is migrated with all its keys', async t => {
  const file = join(t.testdir({}), 'keys.db')
  const db = new DatabaseSync(file)
  db.exec(`${MIGRATIONS[0]}; PRAGMA user_version = 1; PRAGMA application_id = ${0x47574b53}`)
  const insert = db.prepare('INSERT INTO keys (name, digest, created_at, revoked_at) VALUES (?, ?, ?, ?)')
  insert.run('live', key('live').digest, 1, null)
  insert.run('gone', key('gone').digest, 2, 3)
  db.close()
  t.throws(() => readKeys(file), { code: 'outdated' })
  const { store, names, look } = open(t, file)
  t.equal(names(), 'live')
  using other = new KeyFile(file)
  other.block(key('live'), 4, BY)
  revoke(other, 1, 5)
  look()
  t.equal(names(), '')
  t.equal(store.blocked().length, 1)
  t.same(readKeys(file).map(({ revokedAt }) => revokedAt), [5, 3])
})

t.test('a rotation keeps the description of the key, and deletes expired old secrets', async t => {
  const file = join(t.testdir({}), 'keys.db')
  using writer = new KeyFile(file)
  const described = { owner: 'research', note: 'batch jobs', expiresAt: 9_000, prefix: 'mgw_aaaa' }
  writer.create(key('a', { ...described, limits: LIMITS }), 1, BY)
  const { store, look, changes } = open(t, file)
  t.match(store.keys()[0], described)
  const secret = (name: string, oldValidUntil: number) => ({ digest: key(name).digest, prefix: `mgw_${name}`, oldValidUntil })
  const rotate = (to: ReturnType<typeof secret>, now: number) => {
    writer.rotate(writer.find('name', 'a')!, to, now, BY)
    look()
    return store.keys()[0]!
  }
  const second = rotate(secret('second', 500), 100)
  t.match(second, { name: 'a', ...described, prefix: 'mgw_second', limits: LIMITS, digest: key('second').digest })
  t.strictSame(second.oldSecrets, [{ digest: key('a').digest, validUntil: 500 }])
  t.match(changes, [{ added: [{ name: 'a' }], removed: [{ name: 'a' }] }])
  t.strictSame(rotate(secret('third', 700), 200).oldSecrets, [
    { digest: key('a').digest, validUntil: 500 }, { digest: key('second').digest, validUntil: 700 },
  ], 'a second rotation keeps the old secret of the first rotation')
  for (const name of ['a', 'second', 'third']) t.match(writer.find('digest', key(name).digest), { name: 'a' }, name)
  t.equal(rotate(secret('fourth', 900), 900).oldSecrets, undefined, 'expired old secrets are deleted')
  t.equal(writer.find('digest', key('third').digest), null)
  t.match(writer.audit(null, 9).map(({ action, detail }) => [action, detail]), [
    ['key.rotated', 'old secret refused'],
    ['key.rotated', 'old secret valid until 1970-01-01T00:00:00.700Z'],
    ['key.rotated', 'old secret valid until 1970-01-01T00:00:00.500Z'],
    ['key.created', 'owner: research; note: batch jobs; expires: 1970-01-01T00:00:09.000Z'],
  ])
  revoke(writer, 1, 950)
  t.throws(() => writer.rotate({ ...writer.find('id', 1)!, revokedAt: null }, secret('fifth', 999), 960, BY), { code: 'missing' })
})

t.test('owner, note and expiry of a stored key can be changed and removed', async t => {
  const file = join(t.testdir({}), 'keys.db')
  using writer = new KeyFile(file)
  writer.create(key('a', { owner: 'one' }), 1, BY)
  const found = writer.find('name', 'a')!
  writer.change(found, { note: 'two', expiresAt: 5 }, 'x', 2, BY)
  t.match(readKeys(file), [{ key: { owner: 'one', note: 'two', expiresAt: 5 } }])
  writer.change(found, { owner: null, note: null, expiresAt: null }, 'x', 3, BY)
  const [changed] = readKeys(file)
  t.strictSame([changed?.key.owner, changed?.key.note, changed?.key.expiresAt], [undefined, undefined, undefined])
})
