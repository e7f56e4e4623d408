import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { maskedYaml } from '../../../src/config/masked.ts'
import { gateway as run } from '../../cli/command.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { serviceAccountFile } from '../../support/google-credentials.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/** Every secret of the test has this in it. */
const SEED = 'seeded5ecret'
/** In the environment of the gateway. */
const ENV = { STATIC: `sk-static-${SEED}-0123456789`, CLIENT_SECRET: `client-${SEED}-0123456789` }

t.test('no secret of an upstream is in anything that the gateway writes', async t => {
  const folder = folderOf(t)
  writeFileSync(join(folder, 'secret'), `sk-file-${SEED}-0123456789`)
  const tokens = await startTokenServer(t)
  const google = serviceAccountFile(t, tokens.url, { private_key_id: SEED, client_id: SEED })
  const brokenGoogle = serviceAccountFile(t, tokens.url, { private_key: `-----BEGIN PRIVATE KEY-----\n${SEED}\n-----END PRIVATE KEY-----` })
  tokens.fault = res => sendJson(res, 400, { error: 'invalid_client', error_description: `client-${SEED}-0123456789` })
  const upstream = await startUpstream(t, (req, res) => {
    // A provider that repeats the credential, as some do.
    void bodyOf(req).then(() => sendJson(res, 401, { error: { message: `bad key ${req.headers.authorization} ${req.headers['x-api-key']}` } }))
  })
  const yaml = `
server: { listen: 127.0.0.1:0 }
console: { listen: 127.0.0.1:0 }
ledger: { file: ${folder}/ledger.db }
upstreams:
  static: { url: "${upstream.url}", auth: { bearer: "\${STATIC}" } }
  header: { url: "${upstream.url}", auth: { header: x-api-key, value: sk-header-${SEED}-0123456789 } }
  file: { url: "${upstream.url}", auth: { bearer: { file: ${folder}/secret } } }
  command: { url: "${upstream.url}", auth: { bearer: { command: [echo, sk-command-${SEED}-0123456789] } } }
  failing: { url: "${upstream.url}", auth: { bearer: { command: [sh, -c, "echo sk-failing-${SEED}; echo ${SEED} >&2; exit 1"] } } }
  oauth2: { url: "${upstream.url}", auth: { oauth2: { token_url: "${tokens.url}", client_id: me, client_secret: "\${CLIENT_SECRET}" } } }
  google: { vertex: { project: p, endpoint: "${upstream.url}" }, auth: { google: { credentials: ${google} } } }
  google-broken: { vertex: { project: p, endpoint: "${upstream.url}" }, auth: { google: { credentials: ${brokenGoogle} } } }
  pool: { url: "${upstream.url}", auth: { pool: [{ bearer: sk-pool-${SEED}-0123456789 }, { bearer: { file: ${folder}/secret } }] } }
routes:
${['static', 'header', 'file', 'command', 'failing', 'oauth2', 'google', 'google-broken', 'pool'].map(name => `  - { model: ${name}, to: ${name} }`).join('\n')}
  - { model: all, to: [static, header, file, command, failing, oauth2, pool] }
keys: [{ name: test, key: ${KEY} }]
`
  const written: string[] = []
  const gateway = await startTestGateway(t, yaml, ENV)
  for (const model of ['static', 'header', 'file', 'command', 'failing', 'oauth2', 'google', 'google-broken', 'pool', 'all']) {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
    })
    t.equal(response.status, 502, model)
    written.push(JSON.stringify([...response.headers]), await response.text())
  }
  written.push(await (await fetch(`${gateway.addresses.console}/api/status`)).text())
  t.match(await gateway.change(yaml.replace('concurrent', 'x').replace('auth: { bearer: "${STATIC}" }', `auth: { barer: sk-broken-${SEED} }`)), { applied: false })
  await gateway.close()
  written.push(JSON.stringify(gateway.logged), maskedYaml(yaml))
  for (const name of readdirSync(folder)) {
    if (name !== 'secret') written.push(readFileSync(join(folder, name), 'latin1'))
  }
  t.ok(gateway.logged.some(({ msg }) => String(msg).startsWith('credentials:')), 'the reasons are in the log')
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, yaml)
  for (const command of [['check'], ...['all', 'pool'].map(model => ['explain', '--path', '/v1/chat/completions', '--model', model])]) {
    const { code, stdout, stderr } = await run([...command, '--config', file], { env: ENV })
    t.equal(code, 0, `${command.join(' ')}: ${stderr}`)
    written.push(stdout, stderr)
  }
  for (const text of written) t.notMatch(text, new RegExp(`${SEED}|PRIVATE KEY`))
})

function folderOf(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'credentials-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
