import { Buffer } from 'node:buffer'
import t from 'tap'
import { deserializeConfig, serializeConfig } from '../../../src/config/load/load-message.ts'
import { load } from '../../behaviour/config/loading.ts'

const TEXT = `upstreams:
  a: { url: "https://a.example/x", headers: { __proto__: b } }
  b: { simulator: true }
routes: [{ to: [a, b], on: { context_length: a, content_filter: b } }]
keys: [{ name: k, key: sk-0123456789abcdef }]
`

t.test('a configuration is the same after serializeConfig and deserializeConfig', async t => {
  const loaded = load(t, TEXT)
  const message = structuredClone(serializeConfig(loaded))
  if (!('loaded' in message)) throw new Error('not loaded')
  const { config } = deserializeConfig(message.loaded, message.urls)
  t.strictSame(config, loaded.config)
  const { upstreams: upstreamsOf, routes: [route], keys: [key] } = config
  t.equal(upstreamsOf.get('a')?.url?.href, 'https://a.example/x')
  t.equal(upstreamsOf.get('b')?.url, null)
  t.ok(Buffer.isBuffer(key?.digest))
  t.equal(Object.getPrototypeOf(upstreamsOf.get('a')?.headers), null)
  t.equal(route?.targets[0]?.upstream, upstreamsOf.get('a'), 'a route refers to the same object as the map of upstreams')
  t.equal(route?.on.contextLength?.upstream, upstreamsOf.get('a'))
  t.equal(route?.on.contentFilter?.upstream, upstreamsOf.get('b'))
  t.ok(Object.isFrozen(config) && Object.isFrozen(route?.targets))
})

t.test('the serialized configuration has URLs as text; the original configuration is not changed', async t => {
  const loaded = load(t, TEXT)
  const message = serializeConfig(loaded)
  if (!('loaded' in message)) throw new Error('not loaded')
  t.equal(message.loaded.config.upstreams.get('a')?.url, null)
  t.strictSame([...message.urls], [['a', 'https://a.example/x']])
  t.equal(loaded.config.upstreams.get('a')?.url?.hostname, 'a.example')
})
