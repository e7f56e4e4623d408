import { createServer } from 'node:net'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../support/certificate.ts'
import { freePort } from '../support/free-port.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { gateway, listening } from './command.ts'

const KEY = 'sk-test-0123456789abcdef'
const READY = ['status', '--ready']

function folder(t: Test): string {
  const cwd = mkdtempSync(join(tmpdir(), 'ready-'))
  t.teardown(() => rmSync(cwd, { recursive: true, force: true }))
  return cwd
}

t.test('gateway status --ready exits with 0 only while the gateway runs', { timeout: 240_000 }, async t => {
  const { certFile, keyFile } = certificateFiles(t)
  const tls = `, tls: { cert: "${certFile}", key: "${keyFile}" }`
  const ledger = 'ledger: { file: data/ledger.db }\n'
  for (const [title, server, rest] of [
    ['with a ledger', '127.0.0.1:0', ledger],
    ['with TLS', `127.0.0.1:0${tls}`, ledger],
    ['with workers', '127.0.0.1:0, workers: 2', ledger],
    ['without a ledger', `127.0.0.1:${await freePort()}`, ''],
    ['without a ledger, with TLS, on every interface', `":${await freePort()}"${tls}`, ''],
  ] as const) {
    await t.test(title, async t => {
      const cwd = folder(t)
      writeFileSync(join(cwd, 'gateway.yaml'), `server: { listen: ${server} }
upstreams: { sim: { simulator: true } }
routes: [{ to: sim }]
keys: [{ name: team, key: ${KEY} }]
${rest}`)
      t.match(await gateway(READY, { cwd }), { code: 1, stdout: '', stderr: /^error: / })
      const running = await listening(t, ['serve'], { cwd })
      t.match(await gateway(READY, { cwd }), { code: 0, stdout: '', stderr: '' })
      running.child.kill('SIGTERM')
      await running.ended
      t.match(await gateway(READY, { cwd }), { code: 1, stdout: '' })
    })
  }
})

t.test('a draining gateway is not ready', { timeout: 60_000 }, async t => {
  const cwd = folder(t)
  const held = Promise.withResolvers<void>()
  const { url } = await startUpstream(t, async req => {
    await bodyOf(req)
    held.resolve()
  })
  writeFileSync(join(cwd, 'gateway.yaml'), `server: { listen: 127.0.0.1:0 }
upstreams: { up: { url: "${url}" } }
routes: [{ to: up }]
keys: [{ name: team, key: ${KEY} }]
ledger: { file: data/ledger.db }
`)
  const running = await listening(t, ['serve'], { cwd })
  const abort = new AbortController()
  t.teardown(() => abort.abort())
  fetch(`${running.base}/v1/chat/completions`, {
    method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }, body: '{"model":"m","messages":[]}', signal: abort.signal,
  }).catch(() => undefined)
  await held.promise
  running.child.kill('SIGTERM')
  let result = await gateway(READY, { cwd })
  while (result.code === 0) result = await gateway(READY, { cwd })
  t.match(result, { code: 1, stderr: 'error: not ready: the gateway is draining\n' })
})

t.test('gateway status --ready times out with exit code 1 if the gateway does not respond', { timeout: 60_000 }, async t => {
  const cwd = folder(t)
  writeFileSync(join(cwd, 'gateway.yaml'), 'upstreams: { sim: { simulator: true } }\nroutes: [{ to: sim }]\nledger: { file: ledger.db }\n')
  const silent = createServer(() => {})
  await new Promise<void>(resolve => silent.listen(join(cwd, 'control.sock'), resolve))
  chmodSync(join(cwd, 'control.sock'), 0o600)
  t.teardown(() => silent.close())
  t.match(await gateway(READY, { cwd }), { code: 1, stderr: /the gateway does not answer/ })
})
