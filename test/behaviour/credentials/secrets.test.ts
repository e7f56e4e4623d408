import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { maskedText } from '../../../src/config/text/masked.ts'
import { API } from '../../../src/console/api/api.ts'
import { setAwsEnvironment } from '../../support/bedrock.ts'
import { CONSOLE, consoleUser } from '../../support/operator.ts'
import { gateway as run, listening } from '../../cli/command.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { PRIVATE_KEY, serviceAccountFile } from '../../support/google-credentials.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/** A text that each secret of the test contains. */
const SEED = 'seeded5ecret'
/** Secrets in the environment of the gateway. */
const ENV = { STATIC: `sk-static-${SEED}-0123456789`, CLIENT_SECRET: `client-${SEED}-0123456789` }

const MODELS = [
  'static', 'header', 'file', 'command', 'failing', 'oauth2', 'oauth2-token', 'google', 'google-token', 'google-broken', 'azure', 'azure-token',
  'aws', 'aws-profile', 'pool',
]
/** Two lines of the private key in PEM form. */
const PRIVATE_KEY_LINES = PRIVATE_KEY.split('\n').slice(2, 4)
/** The client secret as OAuth 2.0 sends it. */
const BASIC = Buffer.from(`me:${ENV.CLIENT_SECRET}`).toString('base64')

t.test('no output of the gateway contains a secret of an upstream', async t => {
  const folder = folderOf(t)
  writeFileSync(join(folder, 'secret'), `sk-file-${SEED}-0123456789`)
  const tokens = await startTokenServer(t)
  const tokenServer = await startUpstream(t, (req, res) => void bodyOf(req).then(() => {
    sendJson(res, 200, { access_token: `token-${SEED}-0123456789`, token_type: 'Bearer', expires_in: 3600 })
  }))
  const google = serviceAccountFile(t, tokens.url, { private_key_id: SEED, client_id: SEED })
  const brokenGoogle = serviceAccountFile(t, tokens.url, { private_key: `-----BEGIN PRIVATE KEY-----\n${SEED}\n-----END PRIVATE KEY-----` })
  tokens.fault = res => sendJson(res, 400, { error: 'invalid_client', error_description: `client-${SEED}-0123456789` })
  const upstream = await startUpstream(t, (req, res) => {
    // Some providers repeat the credential in the error.
    void bodyOf(req).then(() => sendJson(res, 401, {
      error: { message: `bad key ${req.headers.authorization} ${req.headers['x-api-key']} ${req.headers['x-amz-security-token']}` },
    }))
  })
  // The configuration of AWS has a profile whose source prints secrets, and fails.
  writeFileSync(join(folder, 'aws-config'), `[profile failing]\ncredential_process = sh -c "echo ${SEED}; echo ${SEED} >&2; exit 1"\n`)
  setAwsEnvironment(t, {
    AWS_ACCESS_KEY_ID: 'AKIATESTTESTTESTTEST', AWS_SECRET_ACCESS_KEY: `aws-${SEED}-0123456789`, AWS_SESSION_TOKEN: `session-${SEED}-0123456789`,
    AWS_CONFIG_FILE: join(folder, 'aws-config'),
  })
  const collected: string[] = []
  const collector = await startUpstream(t, (req, res) => void bodyOf(req).then(body => {
    collected.push(body.toString('latin1'))
    sendJson(res, 200, {})
  }))
  const yaml = `
server: { listen: 127.0.0.1:0 }
${CONSOLE}
ledger: { file: ${folder}/ledger.db }
log: { bodies: [{ key: test, keep: 1h, limit: 64kb }] }
telemetry: { prometheus: { listen: 127.0.0.1:0 }, otlp: { endpoint: "${collector.url}", protocol: http/json, content: true, headers: { authorization: "Bearer otlp-${SEED}-0123456789" } } }
upstreams:
  static: { url: "${upstream.url}", auth: { bearer: "\${STATIC}" } }
  header: { url: "${upstream.url}", auth: { header: x-api-key, value: sk-header-${SEED}-0123456789 } }
  file: { url: "${upstream.url}", auth: { bearer: { file: ${folder}/secret } } }
  command: { url: "${upstream.url}", auth: { bearer: { command: [echo, sk-command-${SEED}-0123456789] } } }
  failing: { url: "${upstream.url}", auth: { bearer: { command: [sh, -c, "echo sk-failing-${SEED}; echo ${SEED} >&2; exit 1"] } } }
  oauth2: { url: "${upstream.url}", auth: { oauth2: { token_url: "${tokens.url}", client_id: me, client_secret: "\${CLIENT_SECRET}" } } }
  google: { vertex: { project: p, endpoint: "${upstream.url}" }, auth: { google: { credentials: ${google} } } }
  oauth2-token: { url: "${upstream.url}", auth: { oauth2: { token_url: "${tokenServer.url}", client_id: me, client_secret: "\${CLIENT_SECRET}" } } }
  google-token: { vertex: { project: p, endpoint: "${upstream.url}" }, auth: { google: { credentials: ${serviceAccountFile(t, tokenServer.url)} } } }
  azure-token: { azure: { endpoint: "${upstream.url}" }, auth: { azure: { tenant: t, client_id: me, client_secret: "\${CLIENT_SECRET}", authority: "${tokenServer.url}" } } }
  google-broken: { vertex: { project: p, endpoint: "${upstream.url}" }, auth: { google: { credentials: ${brokenGoogle} } } }
  azure: { azure: { endpoint: "${upstream.url}" }, auth: { azure: { tenant: t, client_id: me, client_secret: "\${CLIENT_SECRET}", authority: "${new URL(tokens.url).origin}" } } }
  aws: { bedrock: { region: us-east-1, endpoint: "${upstream.url}" }, auth: { aws: {} } }
  aws-profile: { bedrock: { region: us-east-1, endpoint: "${upstream.url}" }, auth: { aws: { profile: failing } } }
  pool: { url: "${upstream.url}", auth: { pool: [{ bearer: sk-pool-${SEED}-0123456789 }, { bearer: { file: ${folder}/secret } }] } }
routes:
${MODELS.map(name => `  - { model: ${name}, to: ${name} }`).join('\n')}
  - { model: all, to: [static, header, file, command, failing, oauth2, oauth2-token, azure, azure-token, aws, aws-profile, pool] }
keys: [{ name: test, key: ${KEY} }]
`
  const written: string[] = []
  const ids: string[] = []
  const gateway = await startTestGateway(t, yaml, ENV)
  for (const model of [...MODELS, 'all']) {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
    })
    t.equal(response.status, 502, model)
    ids.push(response.headers.get('x-gateway-request-id') ?? '')
    written.push(JSON.stringify([...response.headers]), await response.text())
  }
  const get = await consoleUser(gateway.addresses.console)
  const ask = async (path: string): Promise<string> => (await get(path)).text()
  written.push(await ask('/api/status'))
  for (const operation of Object.keys(API).filter(name => name.startsWith('GET '))) {
    const path = `/console/api${operation.slice('GET '.length)}`
    const values = path.includes(':id') ? ids : path.includes('/upstreams/') ? MODELS : ['test']
    const paths = [...new Set(values.map(value => path.replace(/:(id|name)/, value)))]
    for (const each of paths) written.push(await ask(each + (path.endsWith('/statement') ? '?month=2026-01&key=test' : '')))
  }
  t.ok(written.some(text => text.includes('"upstreams":')), 'the status is that for users')
  t.ok(written.some(text => text.includes('"attempts":[') && text.includes('aws-profile')), 'the console shows the requests')
  t.equal(written.filter(text => text.includes('"credentials":[{')).length, MODELS.length, 'the console shows the credentials')
  const metrics = await (await fetch(`${gateway.addresses.metrics}/metrics`)).text()
  t.match(metrics, /gateway_attempts_total\{[^}]*aws-profile/)
  written.push(metrics)
  t.match(await gateway.change(yaml.replace('concurrent', 'x').replace('auth: { bearer: "${STATIC}" }', `auth: { barer: sk-broken-${SEED} }`)), { applied: false })
  await gateway.close()
  t.ok(collected.some(text => text.includes('aws-profile')), 'traces were sent')
  written.push(JSON.stringify(gateway.logged), maskedText(yaml), ...collected)
  for (const name of readdirSync(folder)) {
    if (name !== 'secret' && name !== 'aws-config') written.push(readFileSync(join(folder, name), 'latin1'))
  }
  t.ok(gateway.logged.some(({ msg }) => String(msg).startsWith('credentials:')), 'the reasons are in the log')
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, yaml)
  const online = await run(['check', '--online', '--config', file], { env: ENV })
  t.equal(online.code, 1)
  written.push(online.stdout, online.stderr)
  for (const command of [['check'], ...['all', 'pool', 'aws'].map(model => ['explain', '--path', '/v1/chat/completions', '--model', model])]) {
    const { code, stdout, stderr } = await run([...command, '--config', file], { env: ENV })
    t.equal(code, 0, `${command.join(' ')}: ${stderr}`)
    written.push(stdout, stderr)
  }
  const serving = await listening(t, ['serve', '--config', file], { env: ENV })
  const status = await run(['status', '--json', '--config', file], { env: ENV })
  t.equal(status.code, 0, status.stderr)
  written.push(JSON.stringify(serving.lines), status.stdout, status.stderr)
  const secrets = [SEED, 'PRIVATE KEY', BASIC, ...PRIVATE_KEY_LINES]
  const found = written.filter(text => secrets.some(secret => text.includes(secret)))
  t.strictSame(found, [])
})

function folderOf(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'credentials-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
