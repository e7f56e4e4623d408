import { hash } from 'node:crypto'
import t from 'tap'
import { ANONYMOUS, Keyring, hasExpired } from '../../src/auth/keyring.ts'
import { compileGlobs } from '../../src/config/glob.ts'
import type { Key } from '../../src/config/key-types.ts'

const key = (name: string, secret: string, models: string[] | null = null): Key =>
  ({ name, digest: hash('sha256', secret, 'buffer'), models, limits: null })

t.test('a key is found only by its exact value', async t => {
  const ring = new Keyring([key('a', 'sk-a'), key('b', 'sk-b', ['gpt-*'])], compileGlobs)
  t.equal(ring.find('sk-a')?.key?.name, 'a')
  t.equal(ring.find('sk-b')?.key?.name, 'b')
  for (const wrong of [
    '', 'sk-', 'sk-a ', ' sk-a', 'SK-A', 'sk-ab', 'sk-a\0', hash('sha256', 'sk-a', 'hex'),
    hash('sha256', 'sk-a', 'latin1' as 'hex'),
  ]) {
    t.equal(ring.find(wrong), null, JSON.stringify(wrong))
  }
})

t.test('a key can use the models that its globs match', async t => {
  const ring = new Keyring(
    [key('all', '1'), key('some', '2', ['gpt-*', 'fast']), key('none', '3', [])], compileGlobs,
  )
  t.ok(ring.find('1')?.allows('anything'))
  t.equal(ring.find('1')?.restricted, false)
  const some = ring.find('2')
  t.ok(some?.allows('gpt-4'))
  t.ok(some?.allows('fast'))
  t.notOk(some?.allows('faster'))
  t.notOk(some?.allows('GPT-4'))
  t.equal(some?.restricted, true)
  t.notOk(ring.find('3')?.allows('gpt-4'))
  t.equal(ring.find('3')?.restricted, true)
})

t.test('a configured key overrides a stored key with the same value', async t => {
  const stored = { ...key('stored', 'sk'), models: ['gpt-*'] }
  const ring = new Keyring([key('configured', 'sk')], compileGlobs, { keys: [stored], blocked: [] })
  t.match(ring.find('sk'), { key: { name: 'configured' }, restricted: false })
  ring.update({ added: [], removed: [stored] })
  t.ok(ring.find('sk'))
})

t.test('an empty Keyring finds no key', async t => {
  t.equal(new Keyring([], compileGlobs).find(''), null)
  t.equal(ANONYMOUS.key, null)
})

t.test('a Keyring finds a key among ten thousand', async t => {
  const ring = new Keyring(
    Array.from({ length: 10_000 }, (_each, i) => key(`k${i}`, `sk-${i}`)), compileGlobs,
  )
  t.equal(ring.find('sk-9999')?.key?.name, 'k9999')
  t.equal(ring.find('sk-10000'), null)
})

t.test('a blocked key is not found until the key is unblocked, whether configured or stored', async t => {
  const [configured, stored] = [key('a', 'sk-a'), key('b', 'sk-b')]
  const ring = new Keyring([configured], compileGlobs, { keys: [stored], blocked: [configured.digest] })
  t.equal(ring.find('sk-a'), null)
  t.equal(ring.find('sk-b')?.key, stored)
  ring.update({ added: [], removed: [], blocked: [stored.digest, configured.digest] })
  t.equal(ring.find('sk-b'), null)
  // A change of the blocked key does not unblock it.
  const changed = key('b', 'sk-b', ['fast'])
  ring.update({ added: [changed], removed: [stored] })
  t.equal(ring.find('sk-b'), null)
  ring.update({ added: [], removed: [], unblocked: [stored.digest, configured.digest] })
  t.equal(ring.find('sk-a')?.key, configured)
  t.equal(ring.find('sk-b')?.key, changed)
  ring.update({ added: [], removed: [changed], blocked: [changed.digest] })
  ring.update({ added: [], removed: [], unblocked: [changed.digest] })
  t.equal(ring.find('sk-b'), null, 'the key was revoked while it was blocked')
})

t.test('a lookup by digest finds the same key as a lookup by value', async t => {
  const ring = new Keyring([key('a', 'sk-a')], compileGlobs)
  t.equal(ring.findByDigest(hash('sha256', 'sk-a', 'buffer')), ring.find('sk-a'))
  t.equal(ring.findByDigest(hash('sha256', 'sk-b', 'buffer')), null)
  t.equal(ring.findByDigest(Buffer.alloc(0)), null)
})

t.test('a key is found by its old secret until that secret expires, and by its new secret', async t => {
  const clock = { now: 0, wall: () => clock.now }
  const old = hash('sha256', 'sk-old', 'buffer')
  const rotated = { ...key('a', 'sk-new'), oldSecrets: [{ digest: old, validUntil: 100 }] }
  const ring = new Keyring([], compileGlobs, { keys: [rotated], blocked: [] })
  const [before, after] = [ring.find('sk-old'), ring.find('sk-new')]
  t.equal(before?.key, rotated, 'both secrets find the same key object')
  t.equal(after?.key, rotated)
  for (const [at, isOver] of [[99, false], [100, true]] as const) {
    clock.now = at
    t.equal(hasExpired(before!, clock), isOver)
    t.notOk(hasExpired(after!, clock))
  }
  ring.update({ added: [], removed: [rotated] })
  t.strictSame([ring.find('sk-old'), ring.find('sk-new')], [null, null], 'neither secret finds a removed key')
})

t.test('no secret of a key is valid longer than the key', async t => {
  const ring = new Keyring([{
    ...key('a', 'sk-new', ['gpt-*']), expiresAt: 50,
    oldSecrets: [{ digest: hash('sha256', 'sk-old', 'buffer'), validUntil: 100 }],
  }], compileGlobs)
  t.strictSame(['sk-new', 'sk-old'].map(secret => ring.find(secret)?.expiresAt), [50, 50])
})
