import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { gateway, listening } from './command.ts'

const KEY = 'a-key-that-is-long-enough'

/** A folder with a short path, because the path of the control socket can have at most 100 bytes. */
function folder(t: Test): string {
  const cwd = mkdtempSync(join(tmpdir(), 'status-'))
  t.teardown(() => rmSync(cwd, { recursive: true, force: true }))
  return cwd
}

for (const workers of [1, 2]) {
  t.test(`gateway status and gateway reload with ${workers} workers`, async t => {
    const cwd = folder(t)
    const file = join(cwd, 'gateway.yaml')
    const { url } = await startUpstream(t, async (req, res) => {
      await bodyOf(req)
      res.writeHead(503).end()
    })
    const yaml = (rest = '', server = '') => `server: { listen: 127.0.0.1:0, workers: ${workers}${server} }
upstreams: { up: { url: "${url}" }, other: { simulator: true } }
routes: [{ to: up, retries: 0 }, { model: x, to: other }]
keys: [{ name: team, key: ${KEY} }]
ledger: { file: ledger.db }
${rest}`
    writeFileSync(file, yaml())
    const running = await listening(t, ['serve'], { cwd })
    t.equal(statSync(join(cwd, 'control.sock')).mode & 0o777, 0o600)
    for (let n = 0; n < 12; n++) {
      await fetch(`${running.base}/v1/chat/completions`, {
        method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: '{"model":"m","messages":[]}',
      })
    }
    const { stdout: json } = await gateway(['status', '--json'], { cwd })
    const state = JSON.parse(json) as Record<string, unknown>
    t.match(state, {
      workers, state: 'ok', config: { file, hash: /^[0-9a-f]{64}$/, rejected_at: null, problems: [] }, requests_in_flight: 0,
      upstreams: ['up', 'other'], ledger: { healthy: true, lost: 0 }, outbox_rows: null,
      circuits: [{ upstream: 'up', model: 'm', first: { reason: 'status 503', requestId: String } }],
    })
    const { stdout: text } = await gateway(['status'], { cwd })
    t.match(text, /^Gateway: .*since/)
    t.match(text, /up +m +(open|half-open) +\d{4}\S+ +status 503 \(request [\w-]+\), \d+ failures since/)
    t.match(text, /other +- +closed/)

    t.match(await gateway(['reload'], { cwd }), { code: 0, stdout: 'Reloaded: nothing changed\n' })
    writeFileSync(file, yaml('limits: { concurrent: 5 }\nmodels: { m: { price: { input: 1, output: 1 } } }', ', reuse_port: true'))
    const changed = await gateway(['reload'], { cwd })
    t.match(changed, { code: workers === 1 ? 0 : 2 })
    if (workers === 1) {
      t.equal(changed.stdout, 'Reloaded:\n  server: changed\n  models.m: added\n  limits: changed\nRestart to apply: server.reuse_port\n')
    }
    writeFileSync(file, yaml('limit: {}\nlog: { level: loud }'))
    const rejected = await gateway(['reload'], { cwd })
    t.match(rejected, { code: 2, stdout: '', stderr: /gateway\.yaml:6:1: error: unknown key "limit"; did you mean "limits"\?/ })
    t.match(rejected.stderr, /log\.level/)
    t.match((await gateway(['status'], { cwd })).stdout, /Last reload: +rejected/)

    running.child.kill('SIGTERM')
    await running.ended
    t.notOk(existsSync(join(cwd, 'control.sock')))
    writeFileSync(file, yaml())
    t.match(await gateway(['status'], { cwd }), { code: 1, stderr: /no gateway runs with gateway\.yaml/ })
  })
}

t.test('gateway reload fails if the configuration has no ledger', async t => {
  const cwd = folder(t)
  writeFileSync(join(cwd, 'gateway.yaml'), 'upstreams: { up: { simulator: true } }\nroutes: [{ to: up }]\n')
  t.match(await gateway(['reload'], { cwd }), { code: 2, stderr: /has no ledger/ })
})
