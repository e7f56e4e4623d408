import { hostname } from 'node:os'
import t from 'tap'
import { certificateFiles } from '../../support/certificate.ts'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const LEDGER = 'ledger: { file: gateway.db }\n'

t.test('a configuration without `cluster` has no cluster', async t => {
  t.equal(load(t, LEAST).config.cluster, null)
})

t.test('the default name of an instance is its host and port', async t => {
  const { config } = load(t, `${LEAST}\n${LEDGER}server: { listen: :9090 }\ncluster: { postgres: "postgres://u:p@db/x" }\n`)
  t.strictSame(config.cluster, { valkey: null, limitsOffline: 'share', valkeyTimeout: 100, postgres: 'postgres://u:p@db/x', instance: `${hostname()}:9090` })
})

t.test('Valkey is one server, sentinels or a cluster', async t => {
  for (const [valkey, address] of [
    ['redis://u:p@host:6379/0', { url: 'redis://u:p@host:6379/0' }],
    ['rediss://host', { url: 'rediss://host' }],
    ['{ sentinels: ["redis://a", "redis://b"], master: m }', { sentinels: ['redis://a', 'redis://b'], master: 'm' }],
    ['{ sentinels: ["redis://a"], master: m, sentinel_password: s }', { sentinels: ['redis://a'], master: 'm', sentinel_password: 's' }],
    ['{ cluster: ["redis://a"] }', { cluster: ['redis://a'] }],
  ] as const) {
    const { config } = load(t, `${LEAST}\ncluster: { valkey: ${valkey}, limits_offline: refuse, valkey_timeout: 1s }\n`)
    t.match(config.cluster, { valkey: address, limitsOffline: 'refuse', valkeyTimeout: 1_000, postgres: null })
  }
})

t.test('TLS files are relative to the configuration', async t => {
  const { certFile, keyFile } = certificateFiles(t)
  const { config } = load(t, `${LEAST}\ncluster: { valkey: "rediss://a", valkey_tls: { ca: ${certFile}, cert: ${certFile}, key: ${keyFile} } }\n`)
  t.match(config.cluster?.valkey, { url: 'rediss://a', tls: { ca: certFile, pair: { cert: certFile, key: keyFile } } })
})

t.test('a cluster without Valkey causes a warning, because each gateway counts limits separately', async t => {
  const { warnings } = load(t, `${LEAST}\n${LEDGER}cluster: { postgres: "postgres://u:p@db/x", instance: gw1 }\n`)
  t.ok(warnings.some(({ message }) => message === 'without cluster.valkey each gateway counts limits and budgets for itself'))
})

t.test('error messages name the key and contain no password', async t => {
  for (const [text, message] of [
    [`${LEDGER}cluster: { postgres: "mysql://u:s3cret@db/x" }`, /this is not a URL such as postgres:/],
    [`${LEDGER}cluster: { postgres: "postgres://u:s3cret@db" }`, /this is not a URL such as postgres:/],
    ['cluster: { postgres: "postgres://u:s3cret@db/x" }', /cluster.postgres needs ledger.file/],
    ['cluster: { valkey: "http://u:s3cret@host" }', /this is not a URL such as redis:/],
    ['cluster: { valkey: { url: "redis://u:s3cret@host" } }', /unknown key .*url/],
    ['cluster: { valkey: { cluster: "redis://u:s3cret@host" } }', /cluster/],
    ['cluster: { valkey: { cluster: ["redis://u:s3cret@host/name"] } }', /this is not a URL such as redis:/],
    [`${LEDGER}cluster: { postgres: "postgres://u:s3cret@db/x", limits_offline: share }`, /without cluster.valkey no limits are shared/],
    ['cluster: {}', /cluster/],
    ['cluster: { valkey: { cluster: ["redis://:s3cret@a", "rediss://b"] } }', /either all URLs begin with rediss/],
    ['cluster: { valkey: "redis://:s3cret@a", valkey_tls: { ca: nowhere.pem } }', /this needs cluster.valkey with rediss/],
    ['cluster: { valkey: "rediss://:s3cret@a", valkey_tls: { cert: gateway.yaml } }', /cert and key belong together/],
    ['cluster: { valkey: "rediss://:s3cret@a", valkey_tls: { cert: nowhere.pem, key: nowhere.pem } }', /there is no such file/],
    [`${LEDGER}cluster: { postgres: "postgres://u:s3cret@db/x?sslrootcert=ca.pem" }`, /sslrootcert=ca.pem is not the absolute path of a file/],
    [`${LEDGER}cluster: { postgres: "postgres://u:s3cret@db/x?sslmode=verify-full&sslrootcert=/nowhere.pem" }`, /sslrootcert=.nowhere.pem is not the absolute path of a file/],
    [`${LEDGER}cluster: { postgre: "postgres://u:s3cret@db/x" }`, /"postgre".*"postgres"|postgre/],
  ] as const) {
    const found = problems(t, `${LEAST}\n${text}\n`)
    t.match(JSON.stringify(found), message, text)
    t.notMatch(JSON.stringify(found), 's3cret')
  }
})
