import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { CircuitHints, HINTS_SCRIPT } from '../../../src/cluster/hints/circuit-hints.ts'
import { CircuitLog } from '../../../src/routing/circuit-log.ts'
import { Health } from '../../../src/routing/health.ts'
import { Valkey } from '../../../src/cluster/valkey/valkey.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { startRedis, withoutRedis } from '../../support/redis.ts'

const UP = 'up\nm'

t.test('a gateway shares its open circuits with other gateways', { skip: withoutRedis }, async t => {
  const server = await startRedis(t)
  const start = (name: string) => {
    const clock = new FakeClock()
    const circuits = new CircuitLog()
    const health = new Health({ clock, random: () => 1, circuits })
    const valkey = new Valkey({ url: server.url() }, HINTS_SCRIPT, 5_000)
    const hints = new CircuitHints({
      instance: name, process: name, health, circuits, clock: systemClock, knows: upstream => upstream === 'up',
      run: (keys, argument) => valkey.run(keys, argument),
    })
    t.teardown(async () => {
      hints.close()
      await valkey.close()
    })
    return { clock, health, circuits }
  }
  const [one, two] = [start('gw1'), start('gw2')]
  const fail = (id: string) => {
    for (let n = 0; n < 3; n++) one.health.begin(id).failed(null)
  }
  const fail2 = () => two.health.begin(UP).failed(null)
  fail(UP)
  fail('unknown\nm')
  while (two.health.allows(UP)) await new Promise(resolve => setTimeout(resolve, 20))
  t.match(two.health.condition(UP), { circuit: 'open', isHint: true, consecutiveFailures: 0 })
  t.match(two.health.causeOf(UP), { last: { reason: 'reported by gw1', requestId: null } })
  t.ok(two.health.allows('unknown\nm'), 'this gateway has no such upstream')
  t.strictSame(two.circuits.events, [], 'the circuit of another gateway raises no alert here')

  two.clock.advance(7_000)
  t.ok(two.health.allows(UP), 'a hint expires after seconds')
  const probe = two.health.begin(UP)
  t.notOk(two.health.allows(UP), 'only one probe request is allowed')
  probe.responseStarted(1)
  t.ok(two.health.allows(UP))
  t.equal(two.health.condition(UP).circuit, 'closed')
  two.health.hint(UP, 5_000, 'gw1')
  t.ok(two.health.allows(UP), 'a hint has no effect right after a success at this gateway')
  two.clock.advance(20_000)
  two.health.hint(UP, 3_600_000, 'gw1')
  t.ok(two.health.condition(UP).opensIn < 10_000, 'the duration of a hint is limited')
  fail2()
  t.match(two.health.condition(UP), { circuit: 'open', isHint: false }, 'a failure at this gateway replaces the hint')
})
