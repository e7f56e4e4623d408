import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { CapsuleKeyStore } from '../../../src/cluster/keys/capsule-key-store.ts'
import { createCapsuleKey } from '../../../src/base/secrets/capsule-keys.ts'
import type { CapsuleKey } from '../../../src/base/secrets/capsule-keys.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const DAY = 24 * 60 * 60 * 1000

interface Opened {
  readonly store: CapsuleKeyStore
  readonly reported: string[]
}

function open(t: Test, file: string | null, clock: FakeClock, first: CapsuleKey | null = null): Opened {
  const reported: string[] = []
  const store = new CapsuleKeyStore({
    file, url: null, instance: '', first, clock, onFailure: why => void reported.push(why), onRecovered: () => void reported.push('recovered'),
  })
  t.teardown(() => store.close())
  return { store, reported }
}

t.test('a reopened store and a second process read the same keys', async t => {
  const clock = new FakeClock()
  const file = join(t.testdir({}), 'data', 'capsule-keys.db')
  const { store } = open(t, file, clock)
  const { newest } = store.keys
  store.close()
  for (const first of [null, createCapsuleKey(clock.wall() + 1)]) t.strictSame(open(t, file, clock, first).store.keys.all, [newest])
  t.equal(statSync(file).mode & 0o777, 0o600)
})

t.test('every process knows a new capsule key before any process uses that key', async t => {
  const clock = new FakeClock()
  const file = join(t.testdir({}), 'capsule-keys.db')
  const [one, other] = [open(t, file, clock).store, open(t, file, clock).store]
  const { newest } = one.keys
  for (let hours = 0; hours < 29 * 24 + 2; hours++) clock.advance(60 * 60 * 1000)
  t.equal(one.keys.all.length, 2)
  t.strictSame(other.keys.all, one.keys.all)
  t.strictSame(one.keys.newest, newest)
  clock.advance(DAY)
  t.equal(one.keys.newest.id, other.keys.newest.id)
  t.not(one.keys.newest.id, newest.id)
  t.strictSame(open(t, file, clock).store.keys.find(newest.id), newest)
})

t.test('if the store is unreadable, the error is reported once and the gateway uses its own key', async t => {
  const clock = new FakeClock()
  const folder = t.testdir({ 'broken.db': 'x'.repeat(8192) })
  const first = createCapsuleKey(clock.wall())
  mkdirSync(join(folder, 'folder'))
  writeFileSync(join(folder, 'no-folder'), '')
  for (const file of ['broken.db', 'folder', 'no-folder/capsule-keys.db']) {
    const { store, reported } = open(t, join(folder, file), clock, first)
    t.equal(store.keys.newest, first)
    clock.advance(10_000)
    t.equal(reported.length, 1, reported.join())
  }
})
