import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gateway as command } from '../../cli/command.ts'
import { certificateFiles, selfSigned } from '../../support/certificate.ts'
import { freePort } from '../../support/free-port.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { REDIS_PASSWORD, startRedis, withoutRedis } from '../../support/redis.ts'
import { ask } from './ask.ts'

t.test('TLS and passwords of Valkey and PostgreSQL', { skip: withoutPostgres || withoutRedis }, async t => {
  const pair = certificateFiles(t)
  const port = await freePort()
  const [redis, postgres] = await Promise.all([
    startRedis(t, [
      '--tls-port', String(port), '--tls-cert-file', pair.certFile, '--tls-key-file', pair.keyFile, '--tls-ca-cert-file', pair.certFile,
      '--tls-auth-clients', 'optional',
    ]),
    startPostgres(t, pair),
  ])
  const otherCa = join(t.testdir({}), 'other.pem')
  writeFileSync(otherCa, selfSigned().cert)
  const valkey = (password: string) => `rediss://:${encodeURIComponent(password)}@127.0.0.1:${port}`
  const database = (password: string, ca: string) =>
    `${postgres.url().replace(encodeURIComponent(PASSWORD), encodeURIComponent(password))}?sslmode=verify-full&sslrootcert=${ca}`
  const yaml = (cluster: string) => `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
ledger: { file: gateway.db }
keys: [{ name: test, key: ${KEY}, limits: { requests_per_minute: 1000 } }]
cluster: { instance: gw1, valkey_timeout: 5s, ${cluster} }
`

  t.test('with the right certificates, requests are counted and connections are encrypted', async t => {
    const gateway = await startTestGateway(t, yaml(
      `valkey: "${valkey(REDIS_PASSWORD)}", valkey_tls: { ca: ${pair.certFile}, cert: ${pair.certFile}, key: ${pair.keyFile} }, ` +
      `postgres: "${database(PASSWORD, pair.certFile)}"`,
    ))
    t.equal(await ask(gateway), 200)
    const counted = await redis.client.keys('gateway:limits:test')
    t.equal(counted.length, 1, 'the request is counted in Valkey')
    const { code, stdout, stderr } = await command(['cluster', 'status', '--config', gateway.file])
    t.equal(code, 0, stdout + stderr)
    const connections = await postgres.query(`SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
      WHERE application_name LIKE 'gateway%'`)
    t.strictSame(connections, [{ ssl: true }])
  })

  for (const [what, password, ca, valkeySays, databaseSays] of [
    ['certificates of another authority', null, otherCa, /certificate/, /certificate/],
    ['wrong passwords', 'n0t-the-passw0rd', pair.certFile, /WRONGPASS/, /password authentication failed/],
  ] as const) {
    t.test(`with ${what}, log and status report the error without the password, and requests are served`, async t => {
      const gateway = await startTestGateway(t, yaml(
        `valkey: "${valkey(password ?? REDIS_PASSWORD)}", valkey_tls: { ca: ${ca} }, postgres: "${database(password ?? PASSWORD, ca)}"`,
      ))
      t.equal(await ask(gateway), 200)
      const lost = await gateway.waitForLog(({ msg }) => msg === 'shared limits cannot be used: no usable connection to Valkey')
      t.match(lost, { failure: valkeySays })
      const unshipped = await gateway.waitForLog(({ msg }) => msg === 'ledger rows cannot be sent to PostgreSQL: they wait in the file')
      t.match(unshipped, { failure: { message: databaseSays } })
      const { code, stdout, stderr } = await command(['cluster', 'status', '--config', gateway.file])
      t.equal(code, 1)
      t.match(stdout, new RegExp(`Valkey: not reachable: .*${valkeySays.source}`))
      t.match(stdout, new RegExp(`PostgreSQL: not reachable: .*${databaseSays.source}`))
      t.equal(await ask(gateway), 200)
      const said = JSON.stringify(gateway.logged) + stdout + stderr
      for (const secret of [password ?? PASSWORD, REDIS_PASSWORD, PASSWORD]) {
        t.notOk(said.includes(secret))
        t.notOk(said.includes(encodeURIComponent(secret)))
      }
    })
  }
})
