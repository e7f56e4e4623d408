import t from 'tap'
import { serveMetrics } from '../../src/telemetry/metrics-server.ts'
import { connect } from '../support/wire.ts'

t.test('slow clients do not block a scrape', async t => {
  const server = await serveMetrics({ host: '127.0.0.1', port: 0 }, async () => 'up 1\n')
  t.teardown(() => server.close())
  const slow = await Promise.all(Array.from({ length: 64 }, () => connect(t, server.url)))
  for (const client of slow) client.send('GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ')
  t.equal(await (await fetch(`${server.url}/metrics`)).text(), 'up 1\n')
  await slow[0]?.ended
})
