import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { serviceAccountFile } from '../../support/google-credentials.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/** A module that is loaded before the gateway, and records the packages that the gateway loads. */
const RECORDER = `
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
const seen = new Set()
registerHooks({
  load(url, context, next) {
    const inPackage = /\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)\\/(?!.*\\/node_modules\\/)/.exec(url)?.[1]
    const name = inPackage ?? (url.startsWith('file:') ? 'gateway' : 'node')
    if (!seen.has(name)) appendFileSync(process.env.PACKAGES, name + '\\n')
    seen.add(name)
    return next(url, context)
  },
})
`

/** Packages for clouds and token servers. */
const OF_CLOUDS = /^(?:@aws-sdk|@aws-crypto|@smithy|@azure|@google-cloud)\/|^(?:google-auth-library|gaxios|gcp-metadata|jws|oauth4webapi)$/

/** Starts a gateway and sends a request. @returns the cloud packages that the gateway has loaded */
async function packagesOf(t: Test, upstream: string, env: Record<string, string> = {}): Promise<string[]> {
  const cwd = t.testdir({
    'recorder.mjs': RECORDER,
    'packages': '',
    'gateway.yaml': `
server: { listen: 127.0.0.1:0 }
upstreams: { up: ${upstream} }
routes: [{ to: { upstream: up, model: claude-m } }]
keys: [{ name: test, key: ${KEY} }]
`,
  })
  const file = join(cwd, 'packages')
  const { base } = await listening(t, ['serve'], {
    cwd, env: { NODE_OPTIONS: `--import=${pathToFileURL(join(cwd, 'recorder.mjs'))}`, PACKAGES: file, ...env },
  })
  const atStart = readFileSync(file, 'utf8')
  t.match(atStart, /^gateway$/m, 'what is loaded is recorded')
  t.notMatch(atStart.split('\n').filter(name => OF_CLOUDS.test(name)).join(), /./, 'none is loaded at the start')
  const response = await fetch(`${base}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  t.equal(response.status, 200, await response.text())
  return readFileSync(file, 'utf8').split('\n').filter(name => OF_CLOUDS.test(name))
}

async function startModel(t: Test): Promise<string> {
  const { url } = await startUpstream(t, (req, res) => void bodyOf(req).then(() => sendJson(res, 200, {
    id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 1 },
  })))
  return url
}

t.test('without credentials for a cloud, no code of that cloud is loaded', async t => {
  const url = await startModel(t)
  t.strictSame(await packagesOf(t, `{ url: "${url}", auth: { pool: [{ bearer: sk-one }, { bearer: sk-two }] } }`), [])
})

t.test('the first request loads only the code for the cloud of its upstream', async t => {
  const url = await startModel(t)
  const tokens = await startTokenServer(t)
  const azure = `azure: { tenant: t, client_id: me, client_secret: secret, authority: "${new URL(tokens.url).origin}" }`
  for (const [upstream, expected, others] of [
    [`{ bedrock: { region: us-east-1, endpoint: "${url}" }, auth: { aws: {} } }`, /^@aws-sdk\//, /^(@azure|google-auth-library|oauth4webapi)/],
    [`{ vertex: { project: p, endpoint: "${url}" }, auth: { google: { credentials: ${serviceAccountFile(t, tokens.url)} } } }`,
      /^google-auth-library$/, /^(@aws-sdk|@azure|oauth4webapi)/],
    [`{ url: "${url}", auth: { oauth2: { token_url: "${tokens.url}", client_id: me, client_secret: secret } } }`, /^oauth4webapi$/, /^(@aws-sdk|@azure|google)/],
    [`{ azure: { endpoint: "${url}" }, speaks: [messages], auth: { ${azure} } }`, /^oauth4webapi$/, /^(@aws-sdk|@azure|google)/],
  ] as const) {
    await t.test(upstream, async t => {
      const loaded = await packagesOf(t, upstream, { AWS_ACCESS_KEY_ID: 'AKIATESTTESTTESTTEST', AWS_SECRET_ACCESS_KEY: 'secret' })
      t.ok(loaded.some(name => expected.test(name)), loaded.join())
      t.notOk(loaded.some(name => others.test(name)), loaded.join())
    })
  }
})
