import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import type { ValkeyAddress } from '../../../src/config/cluster-types.ts'
import { compileGlob } from '../../../src/config/glob.ts'
import type { Limits } from '../../../src/config/key-types.ts'
import { SharedLimits } from '../../../src/cluster/limits/shared-limits.ts'
import type { SharedLimitsOptions } from '../../../src/cluster/limits/shared-limits.ts'
import { SCRIPT, SEPARATOR } from '../../../src/cluster/limits/shared-script.ts'
import type { Admission, Estimate, LimitedKey, Reservation } from '../../../src/limits/types.ts'
import { WorkerLimiter } from '../../../src/limits/workers/worker-limiter.ts'
import { Valkey } from '../../../src/cluster/valkey/valkey.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { freePort } from '../../support/free-port.ts'
import { startRedis, withoutRedis } from '../../support/redis.ts'
import type { TestRedis } from '../../support/redis.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'

const USD = 1_000_000_000_000n
const NO_LIMITS: Limits = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null, models: new Map() }

function keyWith(limits: Partial<Limits>): LimitedKey {
  return { name: 'team', limits: { ...NO_LIMITS, ...limits } }
}

function groupWith(name: string, limits: Partial<Limits>): LimitedKey {
  return { name, limits: { ...NO_LIMITS, ...limits }, isGroup: true, members: [name] }
}

interface Instance {
  admit(key: LimitedKey, estimate?: Estimate, model?: string): Promise<Admission>
  readonly limits: SharedLimits
  readonly states: (string | null)[]
  /** Resolves when Valkey is unreachable (true), or reachable (false). */
  away(is: boolean): Promise<void>
  end(): Promise<void>
}

let names = 0

async function start(t: Test, server: string | ValkeyAddress, options: Partial<SharedLimitsOptions> = {}, timeoutMs = 5_000): Promise<Instance> {
  const store = new Valkey(typeof server === 'string' ? { url: server } : server, SCRIPT, timeoutMs)
  const states: (string | null)[] = []
  const waiting = new Set<() => void>()
  const limits = new SharedLimits({
    instance: `gw${++names}`, offline: 'share', compileGlob, clock: systemClock, store, spentOf: null, groupSpentOf: null,
    onState: why => {
      states.push(why)
      for (const look of waiting) look()
    },
    ...options,
  })
  const connection = limits.connect(replies => limiter.receive(replies))
  const limiter: WorkerLimiter = new WorkerLimiter(null, systemClock, requests => connection.handle(requests))
  const end = async () => {
    await limits.close()
    await store.close()
  }
  t.teardown(end)
  await limits.ready()
  return {
    admit: async (key, estimate = { tokens: 1, pico: 0n }, model = 'm') => limiter.admit({ key, model, estimate }),
    limits,
    states,
    away: is => new Promise(resolve => {
      const look = () => {
        const isAway = (states.at(-1) ?? null) !== null
        if (isAway !== is) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
    }),
    end,
  }
}

function reservationOf(admission: Admission): Reservation {
  if (!admission.ok) throw new Error(`refused by ${admission.refusal.which}`)
  return admission.reservation
}

async function countAdmitted(admissions: readonly Promise<Admission>[]): Promise<number> {
  return (await Promise.all(admissions)).filter(({ ok }) => ok).length
}

/** Prepares a server as if it had limits before, so that budgets do not wait for the ledger. */
async function inUse(server: TestRedis): Promise<void> {
  await server.client.flushall()
  await server.client.set('gateway:limits', '0')
}

t.test('limits of several instances', { skip: withoutRedis }, async t => {
  const server = await startRedis(t)

  t.test('each kind of limit applies to all instances together', async t => {
    for (const [which, limits] of [
      ['requests', { requestsPerMinute: 100 }], ['tokens', { tokensPerMinute: 100 }], ['concurrent', { concurrent: 100 }],
      ['budget', { budget: { usd: '100', per: 'month' } }],
    ] as const) {
      await inUse(server)
      const instances = [await start(t, server.url()), await start(t, server.url()), await start(t, server.url())]
      const key = keyWith(limits)
      const admissions = Array.from({ length: 900 }, (_, n) => instances[n % 3]!.admit(key, { tokens: 1, pico: USD }))
      const all = await Promise.all(admissions)
      const admitted = all.filter(({ ok }) => ok)
      t.ok(admitted.length <= 100, `${which}: ${admitted.length} of 900 are admitted`)
      // A part of the limit may be in unused leases.
      t.ok(admitted.length >= 75, `${which}: ${admitted.length} of 900 are admitted`)
      t.strictSame([...new Set(all.map(each => each.ok ? which : each.refusal.which))], [which], 'the limit that refuses')
      for (const instance of instances) await instance.end()
    }
  })

  t.test('limits of a group apply to all keys of the group at all instances, together with the limits of each key', async t => {
    for (const [which, limits] of [
      ['requests', { requestsPerMinute: 100 }], ['concurrent', { concurrent: 100 }], ['budget', { budget: { usd: '100', per: 'month' } }],
    ] as const) {
      await inUse(server)
      const instances = [await start(t, server.url()), await start(t, server.url()), await start(t, server.url())]
      const company = groupWith('company', limits)
      const groups = [groupWith('research', { tokensPerMinute: 1_000_000 }), company]
      const keys = ['a', 'b', 'c'].map(name => ({ ...keyWith({ concurrent: 1000 }), name, groups: name === 'c' ? [company] : groups }))
      const all = await Promise.all(Array.from({ length: 900 }, (_, n) =>
        instances[n % 3]!.admit(keys[Math.floor(n / 3) % 3]!, { tokens: 1, pico: USD })))
      const admitted = all.filter(({ ok }) => ok)
      t.ok(admitted.length <= 100, `${which}: ${admitted.length} of 900 are admitted`)
      t.ok(admitted.length >= 70, `${which}: ${admitted.length} of 900 are admitted`)
      const refusedBy = all.flatMap(each => each.ok ? [] : [`${each.refusal.which} of ${each.refusal.scope.group}`])
      t.strictSame([...new Set(refusedBy)], [`${which} of company`])
      for (const admission of admitted) reservationOf(admission).release()
      if (which === 'concurrent') {
        let again = await instances[0]!.admit(keys[0]!)
        while (!again.ok) again = await instances[0]!.admit(keys[0]!)
      }
      for (const instance of instances) await instance.end()
    }
  })

  t.test('a key that joins a group keeps the counts of its running requests', async t => {
    await inUse(server)
    const [one, two] = [await start(t, server.url()), await start(t, server.url())]
    const key = keyWith({ concurrent: 2 })
    const held = reservationOf(await one.admit(key))
    const member = { ...key, groups: [groupWith('company', { concurrent: 2 })] }
    reservationOf(await one.admit(member))
    t.match(await two.admit(key), { refusal: { which: 'concurrent', scope: { group: null } } })
    held.release()
    let next = await two.admit(member)
    while (!next.ok) next = await two.admit(member)
    t.match(await one.admit({ ...member, name: 'other' }), { refusal: { which: 'concurrent', scope: { group: 'company' } } })
  })

  t.test('the budget of a group is restored with the spend of its member groups', async t => {
    await server.client.flushall()
    const groupSpentOf: SharedLimitsOptions['groupSpentOf'] = async groups =>
      groups.map(name => ({ name, model: null, startedAt: Date.now(), pico: 40n * USD }))
    const instance = await start(t, server.url(), { spentOf: async () => [], groupSpentOf })
    const company = { ...groupWith('company', { budget: { usd: '100', per: 'month' } }), members: ['company', 'research'] }
    const key = { ...keyWith({}), groups: [company] }
    t.match(await instance.admit(key, { tokens: 1, pico: 21n * USD }), { refusal: { which: 'budget', scope: { group: 'company' } } })
    t.match(await instance.admit(key, { tokens: 1, pico: 9n * USD }), { ok: true })
    t.equal(instance.limits.budgetSpend().get('group\ncompany'), 80n * USD)
  })

  t.test('settlement frees the unspent part of a reservation for other instances', async t => {
    await inUse(server)
    const [one, two] = [await start(t, server.url()), await start(t, server.url())]
    const key = keyWith({ budget: { usd: '10', per: 'total' }, concurrent: 2 })
    const first = reservationOf(await one.admit(key, { tokens: 1, pico: 10n * USD }))
    t.match(await two.admit(key, { tokens: 1, pico: 1n }), { refusal: { which: 'budget', retryAfterMs: 1000 } })
    first.settle({ tokens: 1, pico: 4n * USD })
    let next = await two.admit(key, { tokens: 1, pico: 5n * USD })
    while (!next.ok) next = await two.admit(key, { tokens: 1, pico: 5n * USD })
    reservationOf(next).settle({ tokens: 1, pico: 5n * USD })
    let refused = await one.admit(key, { tokens: 1, pico: 2n * USD })
    for (; refused.ok || refused.refusal.retryAfterMs === 1000; refused = await one.admit(key, { tokens: 1, pico: 2n * USD })) {
      if (refused.ok) refused.reservation.release()
    }
    t.match(refused, { refusal: { which: 'budget', retryAfterMs: null } }, 'a total budget never renews')
    t.equal(one.limits.budgetSpend().get('team'), 9n * USD)
  })

  t.test('a budget is not renewed when the clock goes back', async t => {
    await inUse(server)
    let days = 0
    const clock = { ...systemClock, wall: () => Date.now() + days * 86_400_000 }
    const instance = await start(t, server.url(), { clock })
    const key = keyWith({ budget: { usd: '10', per: 'day' } })
    reservationOf(await instance.admit(key, { tokens: 1, pico: 9n * USD })).settle({ tokens: 1, pico: 9n * USD })
    for (days of [-1, -5, 0, -2]) {
      t.match(await instance.admit(key, { tokens: 1, pico: 2n * USD }), { refusal: { which: 'budget' } }, `${days} days`)
    }
    days = -1
    t.match(await instance.admit(key, { tokens: 1, pico: 2n * USD }), { refusal: { which: 'budget' } }, 'the earlier spend is still known')
    days = 1
    t.match(await instance.admit(key, { tokens: 1, pico: 10n * USD }), { ok: true }, 'the next day has a new budget')
  })

  t.test('a request can use the part of a budget that its instance already reserved', async t => {
    await inUse(server)
    const [one, two] = [await start(t, server.url()), await start(t, server.url())]
    const key = keyWith({ budget: { usd: '10', per: 'month' } })
    const first = reservationOf(await one.admit(key, { tokens: 1, pico: USD }))
    first.settle({ tokens: 1, pico: USD })
    const allowance = async () => Number(await server.client.hget('gateway:limits:team', (await server.client.hkeys('gateway:limits:team')).find(field => field.startsWith('a')) ?? ''))
    while (await allowance() < 4e9) await new Promise(resolve => setTimeout(resolve, 20))
    const second = await one.admit(key, { tokens: 1, pico: 8n * USD })
    t.match(second, { ok: true })
    t.match(await two.admit(key, { tokens: 1, pico: 2n * USD }), { refusal: { which: 'budget' } })
  })

  t.test('most requests need no call to the store', async t => {
    await inUse(server)
    await server.client.config('RESETSTAT')
    const instance = await start(t, server.url())
    const key = keyWith({ requestsPerMinute: 1_000_000, budget: { usd: '1000000', per: 'month' } })
    for (let n = 0; n < 500; n++) reservationOf(await instance.admit(key, { tokens: 1, pico: 1000n })).settle({ tokens: 1, pico: 1000n })
    const stats = await server.client.info('commandstats')
    const calls = Number(/cmdstat_hgetall:calls=(\d+)/.exec(stats)?.[1])
    t.ok(calls < 250, `${calls} calls`)
  })

  t.test('a request is refused as by a single instance: budget of a glob spent, no price, too large', async t => {
    await inUse(server)
    const instance = await start(t, server.url())
    const models = new Map([['gpt-*', { ...NO_LIMITS, budget: { usd: '1', per: 'day' } as const }]])
    const key = keyWith({ models, tokensPerMinute: 10 })
    t.match(await instance.admit(key, { tokens: 1, pico: 2n * USD }, 'gpt-4'), { refusal: { which: 'budget', scope: { model: 'gpt-*' }, retryAfterMs: null } })
    t.match(await instance.admit(key, { tokens: 1, pico: null }, 'gpt-4'), { refusal: { which: 'unpriced' } })
    t.match(await instance.admit(key, { tokens: 11, pico: 0n }, 'other'), { refusal: { which: 'tokens', retryAfterMs: null } })
    t.match(await instance.admit(key, { tokens: 10, pico: 2n * USD }, 'other'), { ok: true })
    t.match(await instance.admit(key, { tokens: 1, pico: 0n }, 'other'), { refusal: { which: 'tokens' } })
  })

  t.test('reservations of a killed instance are released', async t => {
    await inUse(server)
    const dead = await start(t, server.url(), { instance: 'dead' })
    const alive = await start(t, server.url())
    const key = keyWith({ concurrent: 1, budget: { usd: '10', per: 'month' } })
    reservationOf(await dead.admit(key, { tokens: 1, pico: 9n * USD }))
    t.equal((await alive.admit(key)).ok, false)
    await dead.limits.close()
    await server.client.hset('gateway:limits:team', `s${SEPARATOR}dead`, Date.now() - 21_000)
    t.match(await alive.admit(key, { tokens: 1, pico: 1n * USD }), { ok: true })
  })

  for (const fault of ['cut', 'silence', 'slow'] as const) {
    t.test(`while the store is unreachable (${fault}), each instance has a share and no budget is overspent`, async t => {
      await inUse(server)
      const proxy = await startTcpProxy(t, server.port)
      const instances = [await start(t, server.url(proxy.port), {}, 500), await start(t, server.url(proxy.port), {}, 500)]
      const key = keyWith({ requestsPerMinute: 100_000, budget: { usd: '100', per: 'month' } })
      for (const instance of [...instances, ...instances]) reservationOf(await instance.admit(key, { tokens: 1, pico: USD })).settle({ tokens: 1, pico: USD })
      if (fault === 'slow') proxy.delay(600)
      else proxy[fault]()
      const started = performance.now()
      const all = await Promise.all(Array.from({ length: 300 }, (_, n) => instances[n % 2]!.admit(key, { tokens: 1, pico: USD })))
      t.ok(performance.now() - started < 10_000, 'no request hangs')
      const admitted = all.filter(({ ok }) => ok)
      t.ok(admitted.length >= 10 && admitted.length <= 96, `${admitted.length} are admitted`)
      for (const admission of all) if (!admission.ok) t.match(admission.refusal.which, /unavailable/)
      for (const admission of admitted) reservationOf(admission).settle({ tokens: 1, pico: USD })
      await Promise.all(instances.map(instance => instance.away(true)))
      proxy.heal()
      await Promise.all(instances.map(instance => instance.away(false)))
      const after = await Promise.all(Array.from({ length: 300 }, (_, n) => instances[n % 2]!.admit(key, { tokens: 1, pico: USD })))
      const later = after.filter(({ ok }) => ok).length
      t.ok(4 + admitted.length + later <= 100, `4 + ${admitted.length} + ${later}`)
      t.ok(later > 0)
    })
  }

  t.test('while the store is unreachable, instances divide rates and concurrency, or admit no request with `refuse`', async t => {
    await inUse(server)
    const proxy = await startTcpProxy(t, server.port)
    const [one, two, strict] = [
      await start(t, server.url(proxy.port)), await start(t, server.url(proxy.port)), await start(t, server.url(proxy.port), { offline: 'refuse' }),
    ]
    const key = keyWith({ requestsPerMinute: 900 })
    for (const instance of [one, two, strict, one]) reservationOf(await instance.admit(key))
    proxy.cut()
    const admitted = await countAdmitted(Array.from({ length: 900 }, () => one.admit(key)))
    t.ok(admitted >= 300 && admitted <= 332, `${admitted} are admitted: a third, and what is left of a lease`)
    t.match(await strict.admit(key), { refusal: { which: 'unavailable', retryAfterMs: 1000 } })
  })

  t.test('reservations of other instances survive when the store is emptied', async t => {
    await inUse(server)
    let spent = 0n
    const spentOf: SharedLimitsOptions['spentOf'] = async names => names.map(name => ({ name, model: 'm', startedAt: Date.now(), pico: spent }))
    const [one, two] = [await start(t, server.url(), { spentOf }), await start(t, server.url(), { spentOf })]
    const key = keyWith({ budget: { usd: '100', per: 'month' } })
    const held = reservationOf(await one.admit(key, { tokens: 1, pico: 60n * USD }))
    await server.client.flushall()
    const all = await Promise.all(Array.from({ length: 100 }, () => two.admit(key, { tokens: 1, pico: USD })))
    const admitted = all.filter(({ ok }) => ok).length
    t.ok(admitted > 0 && admitted <= 40, `${admitted} USD of 40 are admitted`)
    held.settle({ tokens: 1, pico: 60n * USD })
    spent += 60n * USD
    t.equal(await countAdmitted(Array.from({ length: 100 }, () => two.admit(key, { tokens: 1, pico: USD }))) + admitted <= 40, true)
  })

  t.test('a late call on an abandoned connection changes nothing', async t => {
    await inUse(server)
    const store = new Valkey({ url: server.url() }, SCRIPT, 5_000)
    t.teardown(() => store.close())
    const report = (call: number, running: number) => store.run(['gateway:limits:team'], JSON.stringify({
      instance: 'gw', call, buckets: [], gauges: [['', 10, running, 1]], accounts: [], admits: [],
    }))
    await report(2, 5)
    await t.rejects(report(1, 0), /a later call was here before/)
    t.equal(await server.client.hget('gateway:limits:team', `c${SEPARATOR}${SEPARATOR}gw`), '5')
  })

  for (const fault of ['emptied', 'restarted'] as const) t.test(`a store that was ${fault} gets the spend from the ledger only once`, async t => {
    await inUse(server)
    const empty = async (): Promise<void> => {
      if (fault === 'emptied') return void await server.client.flushall()
      await server.stop()
      await Promise.all(instances.map(instance => instance.away(true)))
      await server.start()
      await Promise.all(instances.map(instance => instance.away(false)))
    }
    let spent = 0n
    const spentOf: SharedLimitsOptions['spentOf'] = async names => names.map(name => ({ name, model: 'm', startedAt: Date.now(), pico: spent }))
    const instances = [await start(t, server.url(), { spentOf }), await start(t, server.url(), { spentOf })]
    const key = keyWith({ budget: { usd: '100', per: 'month' } })
    const spend = async (count: number): Promise<number> => {
      const all = await Promise.all(Array.from({ length: count }, (_, n) => instances[n % 2]!.admit(key, { tokens: 1, pico: USD })))
      for (const admission of all) {
        if (!admission.ok) continue
        admission.reservation.settle({ tokens: 1, pico: USD })
        spent += USD
      }
      return all.filter(({ ok }) => ok).length
    }
    t.equal(await spend(30), 30)
    await empty()
    await spend(40)
    await empty()
    await spend(100)
    t.ok(spent <= 100n * USD, `${spent / USD} USD of 100 are spent`)
    let last = await instances[0]!.admit(key, { tokens: 1, pico: 1n })
    while (!last.ok && last.refusal.which !== 'budget') last = await instances[0]!.admit(key, { tokens: 1, pico: 1n })
    t.ok(instances[0]!.limits.budgetSpend().get('team')! <= 100n * USD)
    t.ok(spent >= 50n * USD, `${spent / USD} USD of 100 are spent`)
  })
})

t.test('while the store is unreachable, the concurrency of a worker that ends is released', async t => {
  const instance = await start(t, `redis://127.0.0.1:${await freePort()}`, {}, 100)
  await instance.away(true)
  const key = keyWith({ concurrent: 1 })
  const worker = () => {
    const connection = instance.limits.connect(replies => limiter.receive(replies))
    const limiter: WorkerLimiter = new WorkerLimiter(null, systemClock, requests => connection.handle(requests))
    return { connection, admit: async () => limiter.admit({ key, model: 'm', estimate: { tokens: 1, pico: 0n } }) }
  }
  const first = worker()
  t.equal((await first.admit()).ok, true)
  t.equal((await worker().admit()).ok, false, 'the first worker runs a request')
  first.connection.close()
  t.equal((await worker().admit()).ok, true)
})

t.test('with a cluster of Valkey servers, each call for a group stays in one slot', { skip: withoutRedis }, async t => {
  const server = await startRedis(t, ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort()), '--cluster-announce-ip', '127.0.0.1'])
  await server.client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  while (!(await server.client.call('CLUSTER', 'INFO') as string).includes('cluster_state:ok')) await new Promise(resolve => setTimeout(resolve, 50))
  await inUse(server)
  const instance = await start(t, { cluster: [server.url().replace(/\/0$/, '')] })
  const company = groupWith('company', { requestsPerMinute: 5 })
  const keys = ['a', 'b'].map(name => ({ ...keyWith({ concurrent: 100 }), name, groups: [groupWith('research', { concurrent: 100 }), company] }))
  const all = await Promise.all(Array.from({ length: 20 }, (_, n) => instance.admit(keys[n % 2]!)))
  t.equal(all.filter(({ ok }) => ok).length, 5)
  t.strictSame(instance.states, [], 'the store was always reachable')
})

t.test('after the store fails during a report, a single timer starts the next report', async t => {
  const clock = new FakeClock()
  const calls: ((error: Error) => void)[] = []
  const limits = new SharedLimits({
    instance: 'gw1', offline: 'share', compileGlob, clock, spentOf: null, groupSpentOf: null, onState: () => {},
    store: {
      isPartitioned: false,
      connected: async () => {},
      run: () => new Promise((_, reject) => void calls.push(reject)),
      since: async () => ({ since: 0, now: 0 }),
    },
  })
  const turn = () => new Promise(setImmediate)
  await turn()
  const connection = limits.connect(replies => limiter.receive(replies))
  const limiter: WorkerLimiter = new WorkerLimiter(null, clock, requests => connection.handle(requests))
  void limiter.admit({ key: keyWith({ concurrent: 1 }), model: 'm', estimate: { tokens: 1, pico: 0n } })
  await turn()
  const [report, request] = calls
  request?.(new Error('away'))
  await turn()
  const before = clock.pending
  report?.(new Error('away'))
  await turn()
  t.equal(calls.length, 2)
  t.equal(clock.pending, before)
})
