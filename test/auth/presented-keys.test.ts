import t from 'tap'
import { isQuadratic } from '../protocols/linear/growth.ts'
import { presentedKeys, separateCredentials, separateSecrets, withoutSubprotocolKey } from '../../src/auth/presented-keys.ts'

t.test('the keys of a request are returned in a fixed order of headers', async t => {
  t.strictSame(presentedKeys({}, null), [])
  t.strictSame(
    presentedKeys({
      'authorization': 'Bearer one', 'x-api-key': 'two', 'x-goog-api-key': 'three',
      'api-key': 'four',
      'sec-websocket-protocol': 'realtime, openai-insecure-api-key.six, openai-beta.realtime-v1',
    }, 'five'),
    ['one', 'two', 'three', 'four', 'five', 'six'],
  )
})

t.test('a key in the Authorization header needs the scheme Bearer, in upper or lower case', async t => {
  for (const value of ['Bearer k', 'bearer k', 'BEARER   k', 'Bearer\tk ', 'bEaReR k']) {
    t.strictSame(presentedKeys({ authorization: value }, null), ['k'], value)
  }
  for (const value of [
    '', 'k', 'Bearer', 'Bearer ', 'Basic k', 'Bearer a b', 'Bearerk', ' Bearer k', 'Bearer a, Bearer b',
  ]) {
    t.strictSame(presentedKeys({ authorization: value }, null), [], value)
  }
})

t.test('empty headers contain no key', async t => {
  t.strictSame(presentedKeys({ 'x-api-key': '', 'x-goog-api-key': '', 'api-key': '' }, ''), [])
  t.strictSame(presentedKeys({ 'sec-websocket-protocol': 'openai-insecure-api-key.' }, null), [])
})

t.test('withoutSubprotocolKey removes the key from a list of WebSocket subprotocols', async t => {
  const offered = 'realtime, openai-insecure-api-key.sk-1, openai-beta.realtime-v1'
  t.equal(withoutSubprotocolKey(offered), 'realtime, openai-beta.realtime-v1')
  t.equal(withoutSubprotocolKey('openai-insecure-api-key.sk-1'), '')
  t.equal(withoutSubprotocolKey('realtime'), 'realtime')
  t.equal(withoutSubprotocolKey('realtime, x.sk-0123456789abcdef', ['sk-0123456789abcdef']), 'realtime')
  t.equal(withoutSubprotocolKey('a,,b'), 'a, b')
})

t.test('the time to separate credentials grows linearly', t => {
  for (const rest of [' b', '\tb', ' ', ' b ']) {
    t.notOk(isQuadratic(length => {
      const headers = { 'x-gateway-key': 'gateway', 'authorization': 'a'.repeat(length) + rest }
      return () => separateSecrets(separateCredentials(headers))
    }, 30_000), JSON.stringify(rest))
  }
  t.end()
})

t.test("the gateway's key is never the client's own credential", async t => {
  const separate = separateCredentials({ 'x-gateway-key': 'gateway', 'authorization': 'Bearer gateway', 'x-api-key': 'gateway', 'api-key': 'own' })
  t.strictSame(separate, { gatewayKey: 'gateway', own: ['api-key', 'own'] })
})

t.test('beside x-gateway-key, every other credential is the own one of the client', async t => {
  const separate = separateCredentials({
    'x-gateway-key': 'gateway', 'authorization': 'Bearer one', 'x-api-key': 'two', 'api-key': '', 'x-goog-api-key': 'four', 'x-other': 'five',
  })
  t.strictSame(separate, { gatewayKey: 'gateway', own: ['authorization', 'Bearer one', 'x-api-key', 'two', 'x-goog-api-key', 'four'] })
  t.strictSame(separateSecrets(separate), ['gateway', 'one', 'two', 'four'])
  t.strictSame(separateSecrets(separateCredentials({ 'x-gateway-key': '', 'authorization': 'Basic abc' })), ['', 'abc'])
  t.strictSame(separateCredentials({ 'x-gateway-key': '' }), { gatewayKey: '', own: [] })
})
