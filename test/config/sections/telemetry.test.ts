import t from 'tap'
import { LEAST, load } from '../../behaviour/config/loading.ts'

t.test('the name of a collector header can be __proto__ or constructor', async t => {
  const { config } = load(t, `${LEAST}\ntelemetry: { otlp: { endpoint: "http://127.0.0.1:1", headers: { __proto__: a, constructor: b } } }\n`)
  t.strictSame(Object.entries(config.telemetry.otlp?.headers ?? {}), [['__proto__', 'a'], ['constructor', 'b']])
})
