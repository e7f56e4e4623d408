import t from 'tap'
import { ClientRequestIds, requestIds } from '../../src/base/request-id.ts'

const AT = Date.UTC(2026, 0, 2, 3, 4, 5)
const UUID_V7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

t.test('a request id is a UUIDv7 with the current time', async t => {
  const id = requestIds(() => AT)()
  t.match(id, UUID_V7)
  t.equal(Number.parseInt(id.replace('-', '').slice(0, 12), 16), AT)
})

t.test('ids are unique and ascending, even if the clock goes back', async t => {
  let now = AT
  const next = requestIds(() => now)
  const made: string[] = []
  // More than one batch of random bytes; the clock stands still, goes on, and goes back.
  for (const step of [0, 1, -1000, 1001]) {
    now += step
    for (let n = 0; n < 200; n++) made.push(next())
  }
  t.equal(new Set(made).size, made.length)
  t.strictSame(made.toSorted(), made)
  t.ok(made.every(id => UUID_V7.test(id)))
})

t.test('two workers make different ids in the same millisecond', async t => {
  const [one, other] = [requestIds(() => AT), requestIds(() => AT)]
  t.not(one(), other())
})

t.test('an id that a client sends is accepted once per millisecond', async t => {
  const ids = new ClientRequestIds()
  t.ok(ids.isFirst('a', AT))
  t.ok(ids.isFirst('b', AT))
  t.notOk(ids.isFirst('a', AT))
  t.ok(ids.isFirst('a', AT + 1))
  t.ok(ids.isFirst('a', AT), 'an id is accepted again after the clock goes back')
})
