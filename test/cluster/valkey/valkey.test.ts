import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import type { ValkeyTls } from '../../../src/config/cluster-types.ts'
import { HINTS_SCRIPT } from '../../../src/cluster/hints/circuit-hints.ts'
import { SCRIPT, SEPARATOR } from '../../../src/cluster/limits/shared-script.ts'
import type { ScriptArgument } from '../../../src/cluster/limits/shared-script.ts'
import { Valkey } from '../../../src/cluster/valkey/valkey.ts'
import { certificateFiles } from '../../support/certificate.ts'
import { REDIS_PASSWORD, startRedis, startRedisWithSentinel, withoutRedis } from '../../support/redis.ts'
import { freePort } from '../../support/free-port.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'

/** The default of `cluster.valkey_timeout` is shorter; tests run on busy machines. */
const TIMEOUT_MS = 1_000
const LUA = `return { KEYS[1], ARGV[1] }`

t.test('a connection to Valkey', { skip: withoutRedis }, async t => {
  const server = await startRedis(t)

  t.test('the script is run, and the time since which the store has its data is returned', async t => {
    const valkey = new Valkey({ url: server.url() }, LUA, TIMEOUT_MS)
    t.teardown(() => valkey.close())
    t.strictSame(await valkey.run(['key'], 'value'), ['key', 'value'])
    const first = await valkey.since('epoch')
    t.equal(first.since, first.now)
    await server.client.set('epoch', first.now - 5)
    t.equal((await valkey.since('epoch')).since, first.now - 5)
  })

  for (const fault of ['cut', 'silence'] as const) {
    t.test(`a command fails fast while the server is unreachable (${fault}), and works again afterwards`, async t => {
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

  t.test('a response that arrives while the process is paused does not time out', async t => {
    const valkey = new Valkey({ url: server.url() }, LUA, TIMEOUT_MS)
    t.teardown(() => valkey.close())
    await valkey.run(['key'], 'value')
    const reply = valkey.run(['key'], 'value')
    await new Promise(setImmediate)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
    t.strictSame(await reply, ['key', 'value'])
  })

  t.test('the error of a wrong password does not contain the password', async t => {
    const url = server.url().replace(encodeURIComponent(REDIS_PASSWORD), 'not-the-password')
    const valkey = new Valkey({ url }, LUA, TIMEOUT_MS)
    t.teardown(() => valkey.close())
    const error = await valkey.run(['key'], 'value').catch((thrown: unknown) => thrown) as Error
    t.equal(error.name, 'ValkeyError')
    t.notMatch(error.message, 'not-the-password')
  })
})

t.test('a user with the documented rights can run every command of the gateway', { skip: withoutRedis }, async t => {
  const server = await startRedis(t)
  const page = readFileSync(new URL('../../../docs/more-than-one-machine.md', import.meta.url), 'utf8')
  const [, rule = ''] = /^ACL (SETUSER gateway .*)$/m.exec(page) ?? []
  await server.client.call('ACL', ...rule.replace('PASSWORD', 's3cret').split(' '))
  const url = `redis://gateway:s3cret@127.0.0.1:${server.port}`
  const open = (lua: string) => {
    const valkey = new Valkey({ url }, lua, TIMEOUT_MS)
    t.teardown(() => valkey.close())
    return valkey
  }
  const limits = open(SCRIPT)
  await limits.ping()
  await limits.since('gateway:limits')
  const argument: ScriptArgument = {
    instance: 'gw1', call: 1, buckets: [['r ', 10, 0, 1]], gauges: [], accounts: [], admits: [[1, 0, 0, [[1, 0, 0, 0]]]],
  }
  t.match(await limits.run(['gateway:limits:team'], JSON.stringify(argument)), [[[0, 0, 0, 0]]])
  // The script deletes the state that an ended instance left.
  await server.client.hset('gateway:limits:team', `s${SEPARATOR}dead`, 1)
  t.match(await limits.run(['gateway:limits:team'], JSON.stringify({ ...argument, call: 2 })), [[[0, 0, 0, 0]]])
  const hints = open(HINTS_SCRIPT)
  for (const circuits of [[['a\nm', 5_000]], []]) {
    t.strictSame(await hints.run(['gateway:circuits'], JSON.stringify({ instance: 'gw1', process: 'p', circuits })), [])
  }
  await t.rejects(limits.since('other'), /NOPERM/)
})

t.test('a connection over TLS', { skip: withoutRedis }, async t => {
  const { certFile, keyFile } = certificateFiles(t)
  const port = await freePort()
  await startRedis(t, [
    '--tls-port', String(port), '--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile,
  ])
  const url = `rediss://:${encodeURIComponent(REDIS_PASSWORD)}@127.0.0.1:${port}`
  const open = (tls: ValkeyTls) => {
    const valkey = new Valkey({ url, tls }, LUA, TIMEOUT_MS)
    t.teardown(() => valkey.close())
    return valkey
  }

  t.test('a server that requires a client certificate accepts the connection', async t => {
    const pair = { cert: certFile, key: keyFile }
    t.strictSame(await open({ ca: certFile, pair }).run(['key'], 'value'), ['key', 'value'])
    await t.rejects(open({ ca: certFile, pair: null }).run(['key'], 'value'), { name: 'ValkeyError' })
  })

  t.test('each command fails if the certificate of the server is not trusted', async t => {
    const valkey = open({ ca: null, pair: null })
    for (let n = 0; n < 5; n++) await t.rejects(valkey.run(['key'], 'value'), { name: 'ValkeyError', message: /: self-signed certificate$/ })
  })

  t.test('each command fails if a TLS file is unreadable', async t => {
    const valkey = open({ ca: '/nowhere.pem', pair: null })
    await t.rejects(valkey.run(['key'], 'value'), { name: 'ValkeyError', message: /nowhere.pem/ })
  })
})

t.test('a sentinel that never responds is skipped', { skip: withoutRedis }, async t => {
  const { sentinel } = await startRedisWithSentinel(t)
  const silent = await startSilent(t)
  const sentinels = [silent, sentinel].map(port => `redis://:${encodeURIComponent(REDIS_PASSWORD)}@127.0.0.1:${port}`)
  const valkey = new Valkey({ sentinels, master: 'main', sentinel_password: REDIS_PASSWORD }, LUA, TIMEOUT_MS)
  t.teardown(() => valkey.close())
  let reply: unknown = null
  while (reply === null) reply = await valkey.run(['key'], 'value').catch(() => null)
  t.strictSame(reply, ['key', 'value'])
})

/** A server that accepts connections and sends nothing. @returns its port */
async function startSilent(t: Test): Promise<number> {
  const silent = createServer(() => undefined)
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => silent.close())
  return (silent.address() as AddressInfo).port
}

t.test('a command fails at the deadline if the server is missing or never responds', async t => {
  for (const port of [await startSilent(t), await freePort()]) {
    const valkey = new Valkey({ url: `redis://127.0.0.1:${port}` }, LUA, TIMEOUT_MS)
    await t.rejects(valkey.run(['key'], 'value'), { name: 'ValkeyError', message: /1000 ms/ })
    await valkey.close()
  }
})
