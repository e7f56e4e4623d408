import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startTestGateway } from '../support/gateway.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../support/postgres.ts'
import { REDIS_PASSWORD, startRedis, withoutRedis } from '../support/redis.ts'
import { gateway } from './command.ts'

const BASE = 'upstreams: { demo: { simulator: true } }\nroutes: [{ to: demo }]\n'

t.test('gateway cluster status lists the gateways of a cluster', { skip: withoutPostgres || withoutRedis }, async t => {
  const [postgres, redis] = await Promise.all([startPostgres(t), startRedis(t)])
  const text = `${BASE}ledger: { file: gateway.db }\ncluster: { postgres: "${postgres.url()}", valkey: "${redis.url()}", instance: gw1 }\n`
  const running = await startTestGateway(t, text)
  const run = (...args: string[]) => gateway(['cluster', 'status', '--config', running.file, ...args])
  const known = async () => {
    const rows = await postgres.query('SELECT * FROM gateway.instances').catch(() => [])
    return rows.length > 0
  }
  while (!await known()) await new Promise(setImmediate)

  const first = await run('--json')
  t.equal(first.code, 0, first.stderr)
  t.match(JSON.parse(first.stdout), {
    instances: [{ name: 'gw1', version: '0.0.0-test', alive: true, requests_in_flight: 0, outbox_rows: 0, since: /Z$/, last_heartbeat: /Z$/ }],
    valkey: { reachable: true, latency_ms: Number }, postgres: { reachable: true, latency_ms: Number },
  })
  await postgres.query(`INSERT INTO gateway.instances VALUES
    (gen_random_uuid(), 'gw2', '1.0.0', now(), now() - interval '1 minute', 2, 7, 5000)`)
  const second = await run()
  t.match(second.stdout, /gw1 +0\.0\.0-test +alive .*\ngw2 +1\.0\.0 +gone .* 7 +5000 ms\n/)
  t.match(second.stdout, /warning: the clocks of gw2 and PostgreSQL differ by 5000 ms/)

  await running.close()
  t.strictSame((await postgres.query('SELECT name FROM gateway.instances')), [{ name: 'gw2' }], 'a gateway that ends is not shown')
  await Promise.all([redis.stop(), postgres.stop()])
  const third = await run()
  t.equal(third.code, 1)
  t.match(third.stdout, /No gateways\.\n\nValkey: not reachable: .*ECONNREFUSED.*\nPostgreSQL: not reachable: /)
  t.notMatch(third.stdout, PASSWORD)
  t.notMatch(third.stdout, REDIS_PASSWORD)
})

t.test('gateway cluster status fails if the configuration has no cluster', async t => {
  const file = join(t.testdir({}), 'gateway.yaml')
  writeFileSync(file, `${BASE}auth: open\n`)
  const { code, stderr } = await gateway(['cluster', 'status', '--config', file])
  t.equal(code, 2)
  t.match(stderr, /has no cluster/)
})
