import { randomBytes } from 'node:crypto'
import t from 'tap'
import { SharedKeys } from '../../../src/cluster/keys/shared-keys.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'

const BY = { actor: 'test', address: null }
const QUOTA = { live: 3, perDay: 5 }

t.test('a caller never has more keys than allowed, over several gateways', { skip: withoutPostgres, timeout: 120_000 }, async t => {
  const postgres = await startPostgres(t)
  const stores = Array.from({ length: 3 }, (_, n) => new SharedKeys({ url: postgres.url(), name: `test ${n}` }))
  t.teardown(() => stores.forEach(store => store.close()))
  const now = Date.now()
  const key = (caller: string, name: string) =>
    ({ name: `${caller}/${name}`, caller, digest: randomBytes(32), models: null, limits: null, expiresAt: now + 60_000 })
  const make = async (caller: string, name: string, at = now) => {
    const store = stores[Number(name) % stores.length] as SharedKeys
    return store.create(key(caller, name), at, BY, QUOTA).then(() => 'made', (error: { code?: string }) => error.code ?? String(error))
  }
  const results = await Promise.all(['corp:alice', 'corp:bob'].map(caller => Promise.all(Array.from({ length: 12 }, (_, n) => make(caller, String(n))))))
  for (const ofCaller of results) {
    t.equal(ofCaller.filter(result => result === 'made').length, 3)
    t.equal(ofCaller.filter(result => result === 'full').length, 9)
  }
  const { keys } = await (stores[0] as SharedKeys).list()
  t.equal(keys.length, 6)
  for (const { key } of keys.filter(each => each.key.caller === 'corp:bob').slice(0, 2)) {
    const found = await (stores[1] as SharedKeys).find('name', key.name)
    if (found !== null) await (stores[1] as SharedKeys).revoke(found, now, BY)
  }
  t.same([await make('corp:bob', '20'), await make('corp:bob', '21'), await make('corp:bob', '22')], ['made', 'made', 'full'])
  t.equal(await make('corp:bob', '23', now + 3_600_000), 'often', 'expired keys leave room, and five were made today')
  t.equal(await make('corp:bob', '24', now + 2 * 86_400_000), 'made')
})
