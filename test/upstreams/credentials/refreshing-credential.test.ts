import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { headerAuthorization } from '../../../src/upstreams/credentials/credential.ts'
import type { Authorization } from '../../../src/upstreams/credentials/credential.ts'
import { FaultReporter } from '../../../src/upstreams/credentials/fault-reporter.ts'
import { RefreshingCredential } from '../../../src/upstreams/credentials/refreshing-credential.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const HOUR = 3_600_000

t.test('a credential is fetched once, and returned at once while it is valid', async t => {
  const { credential, fetches } = open(t)
  const [a, b] = await Promise.all([credential.authorize([]), credential.authorize([])])
  t.equal(a, b, 'all requests that wait share one fetch')
  t.equal(credential.authorize([]), a)
  t.equal(fetches.length, 1)
})

t.test('a credential is renewed before it expires, and requests use the valid credential meanwhile', async t => {
  const { credential, fetches, clock } = open(t)
  const first = await credential.authorize([])
  t.equal(credential.authorize([]), first)
  clock.advance(HOUR - 5 * 60_000)
  t.equal(fetches.length, 2)
  t.equal(secretOf(credential.authorize([]) as Authorization), 'token-1', 'the second credential is being fetched')
  await settled()
  t.equal(secretOf(credential.authorize([]) as Authorization), 'token-2')
})

for (const lifetimeMs of [10_000, 60_000, HOUR]) {
  t.test(`a lifetime of ${lifetimeMs} ms does not cause a fetch for each request`, async t => {
    const { credential, fetches, clock } = open(t, { lifetimeMs })
    await credential.authorize([])
    for (let i = 0; i < 100; i++) {
      t.notOk(credential.authorize([]) instanceof Promise)
      clock.advance(lifetimeMs / 25)
      await settled()
    }
    t.ok(fetches.length <= 7, `${fetches.length} fetches for four lifetimes`)
  })
}

t.test('an unused credential is fetched again only by the next request', async t => {
  const { credential, fetches, clock } = open(t)
  await credential.authorize([])
  clock.advance(10 * HOUR)
  t.equal(fetches.length, 1)
  t.ok(credential.authorize([]) instanceof Promise)
})

t.test('while the source fails, the credential is used until it expires, and the source is retried at intervals', async t => {
  const { credential, fetches, clock, source } = open(t)
  const first = await credential.authorize([])
  credential.authorize([])
  source.fails = true
  while (clock.monotonic() < HOUR - 60_000) {
    clock.advance(10_000)
    await settled()
    t.equal(credential.authorize([]), first)
  }
  t.ok(fetches.length > 2 && fetches.length < 20, `${fetches.length} fetches in five minutes`)
  clock.advance(60_000)
  await t.rejects(async () => credential.authorize([]), { code: 'credential_unavailable' })
  const asked = fetches.length
  for (let i = 0; i < 50; i++) await t.rejects(async () => credential.authorize([]))
  t.equal(fetches.length, asked, 'requests do not cause a fetch right after a failure')
  source.fails = false
  clock.advance(30_000)
  t.ok(await credential.authorize([]))
})

t.test('a source that does not respond delays no request while the credential is valid', async t => {
  const { credential, fetches, clock, source } = open(t)
  const first = await credential.authorize([])
  credential.authorize([])
  source.hangs = true
  while (clock.monotonic() < HOUR - 60_000) {
    clock.advance(1_000)
    await settled()
    t.equal(credential.authorize([]), first)
  }
  t.ok(fetches.length > 3, 'the source is asked again after each deadline')
})

t.test('a source that does not respond fails at the deadline', async t => {
  const { credential, clock, source } = open(t)
  source.hangs = true
  const waiting = credential.authorize([]) as Promise<Authorization>
  clock.advance(10_000)
  await t.rejects(waiting, { code: 'credential_unavailable', cause: { message: /10 s/ } })
})

t.test('a credential that is refused again is fetched after 1 s, then at growing intervals', async t => {
  const { credential, fetches, clock } = open(t)
  let current = await credential.authorize([])
  for (const wait of [0, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]) {
    if (wait > 0) {
      clock.advance(wait - 1)
      t.equal(credential.recordRefusal([current]), false, `${wait} ms`)
      clock.advance(1)
    }
    t.equal(credential.recordRefusal([current]), true, `${wait} ms`)
    current = await credential.authorize([current])
  }
  t.equal(fetches.length, 8)
  clock.advance(20_000)
  t.equal(credential.recordRefusal([current]), true)
  current = await credential.authorize([current])
  clock.advance(1_000)
  t.equal(credential.recordRefusal([current]), true, 'after 1 s without a refusal, the waits start again from 0')
})

t.test('a refused credential is fetched once more', async t => {
  const { credential, fetches, clock } = open(t)
  const first = await credential.authorize([])
  t.equal(credential.recordRefusal([first]), true)
  const second = await credential.authorize([first])
  t.equal(secretOf(second), 'token-2')
  t.equal(credential.recordRefusal([first, second]), false, 'a request is retried once')
  t.equal(credential.recordRefusal([second]), false, 'the upstream refuses new credentials too')
  t.equal(credential.recordRefusal([first]), true, 'another request was sent with the old credential')
  t.equal(credential.authorize([first]), second)
  t.equal(fetches.length, 2)
  clock.advance(10_000)
  t.equal(credential.recordRefusal([second]), true)
})

t.test('the error of a source is not logged, because the error could contain the secret', async t => {
  const { credential, source, logged } = open(t)
  source.fails = true
  source.message = 'sk-secret'
  await t.rejects(async () => credential.authorize([]), { cause: { message: 'the source of the credential failed' } })
  t.equal(logged.length, 1)
  t.notMatch(JSON.stringify(logged), 'sk-secret')
})

function open(t: Test, { lifetimeMs = HOUR } = {}) {
  const clock = new FakeClock()
  const fetches: number[] = []
  const source = { fails: false, hangs: false, message: 'down' }
  const logged: string[] = []
  const credential = new RefreshingCredential({
    clock,
    reporter: new FaultReporter(pino({}, { write: line => void logged.push(line) }), 'up'),
    expires: true,
    fetch: async () => {
      fetches.push(clock.monotonic())
      if (source.hangs) await new Promise(() => {})
      if (source.fails) throw new Error(source.message)
      return { authorization: headerAuthorization('authorization', 'Bearer ', `token-${fetches.length}`), lifetimeMs }
    },
  })
  t.teardown(() => credential.close())
  return { credential, fetches, clock, source, logged }
}

function secretOf(authorization: Authorization): string | undefined {
  const request = { method: 'GET', path: '/', headers: [], body: null }
  return (authorization.headersFor(request, new URL('http://up')) as string[])[1]?.replace('Bearer ', '')
}

function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
