import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Valkey } from '../../src/valkey/valkey.ts'
import { REDIS_PASSWORD, startRedis, withoutRedis } from '../support/redis.ts'
import { freePort } from '../support/free-port.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

/** The default of `cluster.valkey_timeout` is shorter; tests run on busy machines. */
const TIMEOUT_MS = 1_000
const LUA = `return { KEYS[1], ARGV[1] }`

t.test('a connection to Valkey', { skip: withoutRedis }, async t => {
  const server = await startRedis(t)

  t.test('runs its script, and sets what is missing', async t => {
    const valkey = new Valkey({ url: server.url() }, LUA, TIMEOUT_MS)
    t.teardown(() => valkey.close())
    t.strictSame(await valkey.run(['key'], 'value'), ['key', 'value'])
    t.equal(await valkey.setIfMissing('epoch', 'one'), 'one')
    t.equal(await valkey.setIfMissing('epoch', 'two'), 'one')
  })

  for (const fault of ['cut', 'silence'] as const) {
    t.test(`no command waits while it is away (${fault}); then it goes on`, async t => {
      const proxy = await startTcpProxy(t, server.port)
      const valkey = new Valkey({ url: server.url(proxy.port) }, LUA, TIMEOUT_MS)
      t.teardown(() => valkey.close())
      await valkey.run(['key'], 'value')
      proxy[fault]()
      const started = performance.now()
      await Promise.all(Array.from({ length: 100 }, () => t.rejects(valkey.run(['key'], 'value'), { name: 'ValkeyError' })))
      t.ok(performance.now() - started < 10_000)
      proxy.heal()
      let reply: unknown = null
      while (reply === null) {
        reply = await valkey.run(['key'], 'value').catch(() => null)
        await new Promise(setImmediate)
      }
      t.strictSame(reply, ['key', 'value'])
    })
  }

  t.test('a reply that arrived while this process paused is in time', async t => {
    const valkey = new Valkey({ url: server.url() }, LUA, TIMEOUT_MS)
    t.teardown(() => valkey.close())
    await valkey.run(['key'], 'value')
    const reply = valkey.run(['key'], 'value')
    await new Promise(setImmediate)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
    t.strictSame(await reply, ['key', 'value'])
  })

  t.test('a wrong password is an error without it', async t => {
    const url = server.url().replace(encodeURIComponent(REDIS_PASSWORD), 'not-the-password')
    const valkey = new Valkey({ url }, LUA, TIMEOUT_MS)
    t.teardown(() => valkey.close())
    const error = await valkey.run(['key'], 'value').catch((thrown: unknown) => thrown) as Error
    t.equal(error.name, 'ValkeyError')
    t.notMatch(error.message, 'not-the-password')
  })
})

t.test('a server that is not there, or never answers, costs the deadline', async t => {
  const silent = createServer(() => undefined)
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => silent.close())
  for (const port of [(silent.address() as AddressInfo).port, await freePort()]) {
    const valkey = new Valkey({ url: `redis://127.0.0.1:${port}` }, LUA, TIMEOUT_MS)
    await t.rejects(valkey.run(['key'], 'value'), { name: 'ValkeyError', message: /1000 ms/ })
    await valkey.close()
  }
})
