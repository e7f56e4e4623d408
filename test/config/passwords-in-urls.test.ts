import t from 'tap'
import { LEAST, load, problems } from '../behaviour/config/loading.ts'
import { Database } from '../../src/cluster/postgres/database.ts'
import { Valkey } from '../../src/cluster/valkey/valkey.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../support/postgres.ts'
import { REDIS_PASSWORD, startRedis, withoutRedis } from '../support/redis.ts'

const LEDGER = 'ledger: { file: gateway.db }\n'
const SPECIAL = ['a/b', 'a#b', 'a?b', 'a%b', '%', '50%zz', 'a@b', '@', 'a+b', 'a b', 'a:b', 'a[b]', 'a\\b', '/#?%@+', 'päß', 'x/y@z:1%2', '12/34', '${A}', 'plain']

t.test('a password from the environment needs no escapes in a URL', async t => {
  for (const password of SPECIAL) {
    const { config: { cluster } } = load(t, `${LEAST}\n${LEDGER}cluster:
  postgres: "postgres://gateway:\${PW}@db.example.com:5432/gateway?sslmode=require"
  valkey: "redis://\${USER}:\${PW}@valkey.example.com:6379/0"
`, { PW: password, USER: 'a@b' })
    const postgres = new URL(cluster?.postgres ?? '')
    t.match(postgres, { host: 'db.example.com:5432', pathname: '/gateway', search: '?sslmode=require', username: 'gateway' }, password)
    t.equal(decodeURIComponent(postgres.password), password)
    const valkey = new URL((cluster as { valkey: { url: string } }).valkey.url)
    t.match(valkey, { host: 'valkey.example.com:6379', pathname: '/0' })
    t.strictSame([valkey.username, valkey.password].map(decodeURIComponent), ['a@b', password])
  }
})

t.test('variables in other parts of a URL and escaped passwords are not changed', async t => {
  const urlOf = (url: string, env: Record<string, string>) => load(t, `${LEAST}\n${LEDGER}cluster: { postgres: "${url}" }\n`, env).config.cluster?.postgres
  t.equal(urlOf('postgres://u:${PW}@db/x', { PW: 'a%2Fb%40c' }), 'postgres://u:a%2Fb%40c@db/x')
  t.equal(urlOf('postgres://u:p@${HOST}/${DB}', { HOST: 'db:5432', DB: 'x/y' }), 'postgres://u:p@db:5432/x/y')
  t.equal(urlOf('${URL}', { URL: 'postgres://u:p%2F@db/x' }), 'postgres://u:p%2F@db/x')
  t.equal(urlOf('postgres://u:${PW:-a/b}@db/x', {}), 'postgres://u:a%2Fb@db/x')
})

t.test('a literal password that is invalid in a URL is refused, and the message has the escapes to use', async t => {
  for (const password of ['a/b', 'a#b', 'a?b', 'a%b', '12/34', '12#34', '12?34', '%']) {
    for (const url of [`postgres: "postgres://u:${password}@db/x"`, `valkey: "redis://u:${password}@valkey"`, `valkey: { sentinels: ["redis://u:${password}@valkey"], master: m }`]) {
      const found = JSON.stringify(problems(t, `${LEAST}\n${LEDGER}cluster: { ${url} }\n`))
      t.match(found, /this is not a valid URL: in a password write %2F for/, url)
      if (password.length > 1) t.notMatch(found.replaceAll(/%2F for .*?NAME/g, ''), password)
    }
  }
})

t.test('PostgreSQL and Valkey accept a password with special characters', { skip: withoutPostgres || withoutRedis }, async t => {
  const [postgres, redis] = await Promise.all([startPostgres(t), startRedis(t)])
  const { config: { cluster } } = load(t, `${LEAST}\n${LEDGER}cluster:
  postgres: "postgres://gateway:\${PG}@127.0.0.1:${postgres.port}/postgres"
  valkey: "redis://:\${REDIS}@127.0.0.1:${redis.port}/0"
`, { PG: PASSWORD, REDIS: REDIS_PASSWORD })
  const database = new Database({ url: cluster?.postgres ?? '', name: 'test' })
  t.teardown(() => database.close())
  t.strictSame(await database.query('SELECT 1 AS one'), [{ one: 1 }])
  const valkey = new Valkey(cluster?.valkey as { url: string }, 'return 1', 1_000)
  t.teardown(() => valkey.close())
  t.ok(await valkey.ping() >= 0)
})
