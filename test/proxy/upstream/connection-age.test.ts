import t from 'tap'
import { ConnectionAge } from '../../../src/proxy/upstream/connection-age.ts'

t.test('the maximum age of a connection is shortened at random by up to 20%', async t => {
  for (const [random, least, most] of [[0, 1_000, 1_000], [0.5, 900, 900], [1, 800, 800]] as const) {
    const before = performance.now()
    const expiry = new ConnectionAge(1_000, () => random).expiry()
    t.ok(expiry >= before + least && expiry <= performance.now() + most, String(random))
  }
  t.equal(new ConnectionAge(Infinity).expiry(), Infinity)
})
