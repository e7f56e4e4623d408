import t from 'tap'
import { DiscardedRest } from '../../../src/proxy/upstream/discarded-rest.ts'
import { FakeClock } from '../../support/fake-clock.ts'

function start() {
  const clock = new FakeClock()
  const aborted: string[] = []
  const rest = new DiscardedRest(clock, ({ code }) => aborted.push(code))
  return { clock, aborted, rest }
}

t.test('a discarded response that ends within a second is not aborted', async t => {
  for (const end of ['end', 'broken'] as const) {
    const { clock, aborted, rest } = start()
    t.ok(rest.data(Buffer.alloc(1_000)))
    clock.advance(900)
    rest[end]()
    clock.advance(60_000)
    t.strictSame(aborted, [])
  }
})

t.test('a discarded response that does not end is aborted after a second', async t => {
  const { clock, aborted } = start()
  clock.advance(999)
  t.strictSame(aborted, [])
  clock.advance(1)
  t.strictSame(aborted, ['client_gone'])
})

t.test('a discarded response of more than 64 kB is aborted', async t => {
  const { clock, aborted, rest } = start()
  rest.data(Buffer.alloc(64 * 1024))
  t.strictSame(aborted, [])
  rest.data(Buffer.alloc(1))
  clock.advance(60_000)
  t.strictSame(aborted, ['client_gone'])
})
