import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { inDays, selfSigned } from '../../support/certificate.ts'
import { LEAST, problemsOf } from '../../behaviour/config/loading.ts'

/** Valid only on 2020-01-01. */
const EXPIRED = `-----BEGIN CERTIFICATE-----
MIIBRTCB7KADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCWxvY2FsaG9z
dDAeFw0yMDAxMDEwMDAwMDBaFw0yMDAxMDIwMDAwMDBaMBQxEjAQBgNVBAMMCWxv
Y2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMnesdwlimy5EFpE6K8Y
oDzHmUCojen6A5bjgTRFKse+VSHFC30YUTjEFVVNLzfn/QUC1SqgoA0gm/CpLNiu
eUOjLzAtMA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/
AAABMAoGCCqGSM49BAMCA0gAMEUCIAFNOsU+MQiGY0siLR7lzuYLysnFDz6ZVubb
LvMgFjp+AiEA8mplgPOkNN0RUFayLT+qLpm0xZYfUtEMIYZgZ4xlEWU=
-----END CERTIFICATE-----
`

t.test('certificates and keys are read, and a key that does not match its certificate is refused', async t => {
  const [one, two, weak] = [selfSigned(), selfSigned(), selfSigned('P-192')]
  const directory = t.testdir({
    'cert.pem': one.cert,
    'key.pem': one.key,
    'other.pem': two.key,
    'weak.pem': weak.cert,
    'weak-key.pem': weak.key,
    'weak-chain.pem': `${one.cert}${weak.cert}`,
    'chain.pem': `# chain\n${one.cert}${two.cert}`,
    'broken.pem': one.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'),
    'broken-chain.pem': one.cert + two.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'),
    'locked.pem': '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n',
    'gateway.yaml': '',
  })
  mkdirSync(join(directory, 'dir.pem'))
  const told = (cert: string, key: string): string[] => {
    const file = join(directory, 'gateway.yaml')
    writeFileSync(file, `${LEAST}auth: open\nserver: { tls: { cert: ${cert}, key: ${key} } }\n`)
    return problemsOf(() => loadConfig(file, {})).map(({ message }) => message)
  }
  t.strictSame(told('cert.pem', 'key.pem'), [])
  t.strictSame(told('chain.pem', 'key.pem'), [])
  t.match(told('cert.pem', 'other.pem'), [/private key does not belong to the certificate/])
  t.match(told('weak.pem', 'weak-key.pem'), [/OpenSSL rejects .*: ee key too small/])
  t.match(told('weak-chain.pem', 'key.pem'), [/OpenSSL rejects .*: ca key too small/])
  t.match(told('broken.pem', 'key.pem'), [/certificate 1 of the file cannot be parsed/])
  t.match(told('broken-chain.pem', 'key.pem'), [/certificate 2 of the file cannot be parsed/])
  t.match(told('key.pem', 'cert.pem'), [/no certificate/, /no private key/])
  t.match(told('cert.pem', 'locked.pem'), [/passphrase/])
  t.match(told('dir.pem', 'key.pem'), [/this is a directory; name a file/])
})

t.test('a pipe in place of a certificate or key is refused', {
  skip: process.platform === 'win32' && 'no pipes',
}, async t => {
  const directory = t.testdir({
    'cert.pem': selfSigned().cert,
    'gateway.yaml': `${LEAST}auth: open\nserver: { tls: { cert: cert.pem, key: pipe } }\n`,
    'other.yaml': `${LEAST}auth: open\nserver: { tls: { cert: pipe, key: cert.pem } }\n`,
  })
  execFileSync('mkfifo', [join(directory, 'pipe')])
  const told = (name: string) =>
    problemsOf(() => loadConfig(join(directory, name), {})).map(({ message }) => message)
  t.match(told('gateway.yaml'), [/this is a pipe, a socket or a device/])
  t.match(told('other.yaml'), [/this is a pipe, a socket or a device/, /no private key/])
})

t.test('an expired certificate causes a warning', async t => {
  const directory = t.testdir({ 'expired.pem': EXPIRED })
  const file = join(directory, 'gateway.yaml')
  writeFileSync(file, `upstreams: { a: { url: "https://localhost", ca: expired.pem } }
routes: [{ to: a }]
auth: open
`)
  const told = problemsOf(() => loadConfig(file, {}))
  t.match(told, [{ severity: 'warning', line: 1, message: /run out, on Jan  2/ }])
  t.equal(loadConfig(file, {}).config.upstreams.get('a')?.ca, join(directory, 'expired.pem'))
})

t.test('a certificate that is not valid yet causes a warning', async t => {
  const directory = t.testdir({ 'early.pem': selfSigned('P-256', '490102000000Z').cert })
  const file = join(directory, 'gateway.yaml')
  writeFileSync(file, `upstreams: { a: { url: "https://localhost", ca: early.pem } }
routes: [{ to: a }]
auth: open
`)
  const told = problemsOf(() => loadConfig(file, {}))
  t.match(told, [{ severity: 'warning', line: 1, message: /not valid before Jan  2 .* 2049/ }])
})

t.test('a certificate causes a warning if less than two weeks and less than a quarter of its lifetime are left', async t => {
  const directory = t.testdir({})
  const file = join(directory, 'gateway.yaml')
  writeFileSync(file, `${LEAST}auth: open\nserver: { tls: { cert: cert.pem, key: key.pem } }\n`)
  const told = (from: number, to: number): string[] => {
    const { cert, key } = selfSigned('P-256', inDays(from), inDays(to))
    writeFileSync(join(directory, 'cert.pem'), cert)
    writeFileSync(join(directory, 'key.pem'), key)
    return problemsOf(() => loadConfig(file, {})).map(({ severity, message }) => `${severity}: ${message}`)
  }
  t.strictSame(told(-75, 15), [])
  t.match(told(-77, 13), [/^warning: certificate 1 of the file runs out soon, on /])
  t.strictSame(told(-4, 2), [])
  t.match(told(-5, 1), [/^warning: certificate 1 of the file runs out soon, on /])
})
