import { execFileSync } from 'node:child_process'
import t from 'tap'
import { connectionError } from '../../../src/proxy/upstream/connection-error.ts'

t.test('a process without free descriptors reports overload, not an unreachable upstream', async t => {
  // Opens connections until the descriptors are used up, and prints the error of the last connection.
  const script = `
    import { connect, createServer } from 'node:net'
    const server = createServer().listen(0, '127.0.0.1', () => {
      const next = () => connect(server.address().port, '127.0.0.1', next)
        .on('error', ({ code, message }) => {
          process.stdout.write(JSON.stringify({ code, message }), () => process.exit())
        })
      next()
    })`
  const args = ['-c', 'ulimit -n 64; exec "$0" --input-type=module --eval "$1"', process.execPath, script]
  const said = JSON.parse(execFileSync('sh', args, { encoding: 'utf8' })) as { code: string, message: string }
  t.equal(said.code, 'EMFILE')
  const error = connectionError(Object.assign(new Error(said.message), said), false)
  t.match(error, { code: 'overloaded', source: 'gateway', cause: { code: 'EMFILE' } })
  t.equal(connectionError(Object.assign(new Error(), { code: 'ECONNREFUSED' }), false).code, 'upstream_unreachable')
})

t.test('an alert about the certificate of the gateway is named', async t => {
  for (const code of ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE']) {
    const error = connectionError(Object.assign(new Error('alert'), { code }), true)
    t.match(error, { code: 'upstream_unreachable', message: "the upstream does not accept the gateway's certificate, or requires one; see tls of the upstream" })
  }
})
