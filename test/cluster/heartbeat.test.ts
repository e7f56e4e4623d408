import { randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import t from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Heartbeat } from '../../src/cluster/heartbeat.ts'
import { startPostgres, withoutPostgres } from '../support/postgres.ts'

t.test('a clock that is 5 seconds ahead is reported and logged', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  const warned = Promise.withResolvers<Record<string, unknown>>()
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      warned.resolve(JSON.parse(chunk.toString()) as Record<string, unknown>)
      done()
    },
  })
  const heartbeat = new Heartbeat({
    url: server.url(), process: randomUUID(), instance: 'gw1', version: '1.2.3', log: pino(sink), onBeat: failure => void t.equal(failure, null),
    clock: { ...systemClock, wall: () => Date.now() + 5_000 },
    state: () => ({ requestsInFlight: 3, outboxRows: 9, keyChange: null }),
  })
  t.match(await warned.promise, { level: 40, difference_ms: Number, msg: /clocks .* differ/ })
  let rows: Record<string, unknown>[] = []
  while (rows.length === 0) rows = await server.query('SELECT * FROM gateway.instances')
  t.match(rows, [{ name: 'gw1', version: '1.2.3', requests_in_flight: 3, outbox_rows: '9' }])
  t.ok(Math.abs(Number(rows[0]?.['clock_difference_ms']) - 5_000) < 1_000)
  await heartbeat.close()
  t.strictSame(await server.query('SELECT * FROM gateway.instances'), [])
})
