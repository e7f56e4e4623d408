import type * as http from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import { AzureOpenAI, OpenAI } from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import { setEnvironment } from '../../support/environment.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { drained, rejection } from '../clients/setup.ts'

const FILTERED = {
  choices: [{
    index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' },
    content_filter_results: { hate: { filtered: false, severity: 'safe' } },
  }],
  prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
}

t.test('a request goes to the v1 API of Azure with the operator\'s key', async t => {
  const { gateway, seen } = await start(t, 'api_version: v1', '{ header: api-key, value: azure-key }')
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY })
  t.strictSame(await openai.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }] }), FILTERED)
  t.match(seen[0], { url: '/openai/v1/chat/completions', headers: { 'api-key': 'azure-key' }, body: { model: 'mini' } })
  t.equal(seen[0]?.headers['authorization'], undefined)
  const azure = new AzureOpenAI({ endpoint: gateway.url, apiKey: KEY, apiVersion: '2024-02-01', deployment: 'fast' })
  t.strictSame(await azure.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }] }), FILTERED)
  t.equal(seen[1]?.url, '/openai/v1/chat/completions')
})

t.test('with a dated api_version, the deployment is in the path of the upstream request', async t => {
  const { gateway, seen } = await start(t, 'api_version: 2025-04-01-preview', '{ header: api-key, value: azure-key }')
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY })
  await openai.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(seen[0]?.url, '/openai/deployments/mini/chat/completions?api-version=2025-04-01-preview')
  const line = await gateway.waitForLog(({ msg }) => msg === 'exchange')
  t.match(line, { input_tokens: 3, output_tokens: 1 })
})

t.test('a request of a messages client is translated for Azure', async t => {
  const { gateway, seen } = await start(t, 'api_version: v1', '{ header: api-key, value: azure-key }')
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model: 'fast', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  t.match(await response.json(), { type: 'message', content: [{ type: 'text', text: 'Hi' }] })
  t.equal(seen[0]?.url, '/openai/v1/chat/completions')
})

/** A stream with a content filter: the first and the last event of Azure have no id, and one has no choices. */
const STREAMED = [
  { choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0, content_filter_results: { jailbreak: { filtered: false, detected: false } } }] },
  { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'mini', choices: [{ index: 0, delta: { role: 'assistant', content: '', refusal: null }, finish_reason: null, content_filter_results: {} }] },
  { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'mini', choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null, content_filter_results: { hate: { filtered: false, severity: 'safe' } } }] },
  { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'mini', choices: [{ index: 0, delta: {}, finish_reason: 'stop', content_filter_results: {} }] },
  { id: '', object: '', created: 0, model: '', choices: [{ index: 0, finish_reason: null, content_filter_results: { violence: { filtered: false, severity: 'low' } }, content_filter_offsets: { check_offset: 44, start_offset: 44, end_offset: 46 } }] },
]
const USAGE = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'mini', choices: [], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } }

for (const version of ['v1', '2025-04-01-preview']) {
  t.test(`streams keep the fields of the content filter: ${version}`, async t => {
    const { gateway, azure, answer } = await start(t, `api_version: ${version}`, '{ header: api-key, value: azure-key }')
    const sent = [...STREAMED, USAGE].map(event => `data: ${JSON.stringify(event)}\n\n`)
    answer((res, { stream_options: options }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.end([...options?.include_usage ? sent : sent.slice(0, -1), 'data: [DONE]\n\n'].join(''))
    })
    const asked = { model: 'fast', messages: [{ role: 'user' as const, content: 'Hi' }], stream: true as const }
    t.strictSame(await drained(azure.chat.completions.create(asked)), STREAMED, 'without the usage that the client did not request')
    const withUsage = azure.chat.completions.create({ ...asked, stream_options: { include_usage: true } })
    t.strictSame(await drained(withUsage), [...STREAMED, USAGE])
    await gateway.waitForLog(({ msg, input_tokens: input, output_tokens: output }) => msg === 'exchange' && input === 3 && output === 1)
  })
}

t.test('a client gets the full error if the content filter refuses the prompt', async t => {
  const { azure, answer } = await start(t, 'api_version: 2025-04-01-preview', '{ header: api-key, value: azure-key }')
  const error = {
    message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    type: null, param: 'prompt', code: 'content_filter', status: 400,
    innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: { violence: { filtered: true, severity: 'medium' } } },
  }
  answer(res => sendJson(res, 400, { error }))
  for (const stream of [false, true]) {
    const refused = await rejection(t, azure.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content: 'Hi' }], stream }), `stream: ${stream}`)
    t.match(refused, { status: 400, code: 'content_filter', param: 'prompt', error })
  }
})

t.test('a response that the content filter ends has the stop reason for filtered content in each protocol', async t => {
  const { gateway, azure, answer } = await start(t, 'api_version: v1', '{ header: api-key, value: azure-key }')
  const choice = { index: 0, finish_reason: 'content_filter', content_filter_results: { hate: { filtered: true, severity: 'high' } } }
  answer((res, { stream }) => {
    if (!stream) return sendJson(res, 200, { ...FILTERED, choices: [{ ...choice, message: { role: 'assistant', content: 'H' } }] })
    const event = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'mini', choices: [{ ...choice, delta: {} }] }
    return res.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`)
  })
  const asked = { model: 'fast', messages: [{ role: 'user' as const, content: 'Hi' }] }
  t.match(await azure.chat.completions.create(asked), { choices: [choice] })
  t.match(await drained(azure.chat.completions.create({ ...asked, stream: true })), [{ choices: [choice] }])
  const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: KEY })
  t.match(await anthropic.messages.create({ ...asked, max_tokens: 10 }), { stop_reason: 'refusal' })
  t.equal((await anthropic.messages.stream({ ...asked, max_tokens: 10 }).finalMessage()).stop_reason, 'refusal')
})

t.test('one Entra ID token is fetched with a client secret for all requests', async t => {
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

t.test('the token of an App Service managed identity is used', async t => {
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

interface Body {
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean }
}

async function start(t: Test, version: string, auth: string) {
  let respond: ((res: http.ServerResponse, body: Body) => void) | null = null
  const seen: { url: string | undefined, headers: Record<string, unknown>, body: unknown }[] = []
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(body => {
      const json = JSON.parse(body.toString()) as Body
      seen.push({ url: req.url, headers: req.headers, body: json })
      if (respond === null) sendJson(res, 200, FILTERED)
      else respond(res, json)
    })
  })
  const gateway = await startTestGateway(t, `
upstreams: { azure: { azure: { endpoint: "${upstream.url}", ${version} }, auth: ${auth} } }
routes: [{ model: fast, to: { upstream: azure, model: mini } }]
`)
  const azure = new AzureOpenAI({ endpoint: gateway.url, apiKey: KEY, apiVersion: '2025-04-01-preview', maxRetries: 0 })
  return { gateway, seen, azure, answer: (how: NonNullable<typeof respond>) => { respond = how } }
}
