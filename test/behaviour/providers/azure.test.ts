import { AzureOpenAI, OpenAI } from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import { setEnvironment } from '../../support/environment.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const FILTERED = {
  choices: [{
    index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' },
    content_filter_results: { hate: { filtered: false, severity: 'safe' } },
  }],
  prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
}

t.test('the current API, with a key', async t => {
  const { gateway, seen } = await start(t, 'api_version: v1', '{ header: api-key, value: azure-key }')
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY })
  t.strictSame(await openai.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }] }), FILTERED)
  t.match(seen[0], { url: '/openai/v1/chat/completions', headers: { 'api-key': 'azure-key' }, body: { model: 'mini' } })
  t.equal(seen[0]?.headers['authorization'], undefined)
  const azure = new AzureOpenAI({ endpoint: gateway.url, apiKey: KEY, apiVersion: '2024-02-01', deployment: 'fast' })
  t.strictSame(await azure.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }] }), FILTERED)
  t.equal(seen[1]?.url, '/openai/v1/chat/completions')
})

t.test('a dated version has the deployment in the path', async t => {
  const { gateway, seen } = await start(t, 'api_version: 2025-04-01-preview', '{ header: api-key, value: azure-key }')
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY })
  await openai.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(seen[0]?.url, '/openai/deployments/mini/chat/completions?api-version=2025-04-01-preview')
  const line = await gateway.waitForLog(({ msg }) => msg === 'exchange')
  t.match(line, { input_tokens: 3, output_tokens: 1 })
})

t.test('a messages client is translated', async t => {
  const { gateway, seen } = await start(t, 'api_version: v1', '{ header: api-key, value: azure-key }')
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model: 'fast', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  t.match(await response.json(), { type: 'message', content: [{ type: 'text', text: 'Hi' }] })
  t.equal(seen[0]?.url, '/openai/v1/chat/completions')
})

t.test('Entra ID with a client secret', async t => {
  const server = await startTokenServer(t)
  const authority = new URL(server.url).origin
  const { gateway, seen } = await start(
    t, 'api_version: v1', `{ azure: { tenant: my-tenant, client_id: app, client_secret: s3cret, authority: "${authority}" } }`,
  )
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY })
  for (let i = 0; i < 3; i++) await openai.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(seen[2]?.headers['authorization'], 'Bearer token-1')
  t.equal(server.requests.length, 1)
  t.equal(server.requests[0]?.body.get('scope'), 'https://cognitiveservices.azure.com/.default')
})

t.test('a managed identity, as App Service has it', async t => {
  const asked: (string | undefined)[] = []
  const identity = await startUpstream(t, (req, res) => {
    asked.push(`${req.headers['x-identity-header']} ${new URL(req.url ?? '', 'http://x').searchParams.get('resource')}`)
    sendJson(res, 200, {
      access_token: 'identity-token', token_type: 'Bearer', resource: 'x',
      expires_on: String(Math.floor(Date.now() / 1_000) + 3_600),
    })
  })
  setEnvironment(t, { IDENTITY_ENDPOINT: `${identity.url}/msi/token`, IDENTITY_HEADER: 'identity-secret' })
  const { gateway, seen } = await start(t, 'api_version: v1', '{ azure: {} }')
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY })
  for (let i = 0; i < 2; i++) await openai.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(seen[1]?.headers['authorization'], 'Bearer identity-token')
  t.equal(asked.at(-1), 'identity-secret https://cognitiveservices.azure.com')
  t.notMatch(JSON.stringify(gateway.logged), /identity-(token|secret)/)
})

async function start(t: Test, version: string, auth: string) {
  const seen: { url: string | undefined, headers: Record<string, unknown>, body: unknown }[] = []
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(body => {
      seen.push({ url: req.url, headers: req.headers, body: JSON.parse(body.toString()) })
      sendJson(res, 200, FILTERED)
    })
  })
  const gateway = await startTestGateway(t, `
upstreams: { azure: { azure: { endpoint: "${upstream.url}", ${version} }, auth: ${auth} } }
routes: [{ model: fast, to: { upstream: azure, model: mini } }]
`)
  return { gateway, seen }
}
