import t from 'tap'
import { ownersOf } from '../../src/auth/key-owners.ts'
import type { Key } from '../../src/config/key-types.ts'

const key = (name: string, owner?: string): Key => ({ name, digest: Buffer.alloc(32), models: null, limits: null, ...owner !== undefined && { owner } })
const stored = (name: string, owner: string | undefined, revokedAt: number | null) => ({ id: 1, key: key(name, owner), createdAt: 0, revokedAt })

t.test('the owner of a key name is the owner of the active key with that name, configured or stored', async t => {
  t.strictSame([...ownersOf([key('a', 'file')], [])], [['a', 'file']])
  t.strictSame([...ownersOf([key('a')], [])], [])
  t.equal(ownersOf([], [stored('a', 'live', null), stored('a', 'old', 5)]).get('a'), 'live')
  t.equal(ownersOf([], [stored('a', 'old', 5), stored('a', 'live', null)]).get('a'), 'live')
  t.equal(ownersOf([], [stored('a', 'old', 5), stored('a', 'later', 6)]).get('a'), 'later')
  t.equal(ownersOf([key('a', 'file')], [stored('a', 'live', null)]).get('a'), 'file')
  t.equal(ownersOf([], [stored('a', 'old', 5)]).get('a'), 'old', 'a revoked key keeps its owner if no active key has its name')
})
