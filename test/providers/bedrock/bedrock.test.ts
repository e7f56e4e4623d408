import Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import type { Test } from 'tap'
import { chunkFrame, eventFrame, exceptionFrame } from '../../support/aws.ts'
import {
  EVENTS, KEY_ENVIRONMENT, MESSAGE, sendException, sendFrames, setAwsEnvironment, startBedrock, startFrames,
} from '../../support/bedrock.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'

const ARN = 'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0'
/** What a model said. */
const PRIVATE = 'Xyzzy is private'
const ASKED = { model: 'fast', max_tokens: 10, messages: [{ role: 'user' as const, content: 'Hi' }] }

t.test('a request is sent to Bedrock in its format', async t => {
  const { gateway, bedrock } = await start(t)
  const { data, response } = await client(gateway.url).messages.create(ASKED).withResponse()
  t.match(data, MESSAGE)
  t.equal(response.headers.get('request-id'), 'aws-request-1')
  t.notOk([...response.headers.keys()].some(name => name.startsWith('x-amz')))
  const [request] = bedrock.seen
  t.equal(request?.url, '/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/invoke')
  t.strictSame(JSON.parse(request?.body ?? ''), { max_tokens: 10, messages: ASKED.messages, anthropic_version: 'bedrock-2023-05-31' })
  t.notOk(Object.keys(request?.headers ?? {}).some(name => name.startsWith('anthropic-')))
  t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { status: 200, input_tokens: 9, output_tokens: 3 })
})

t.test('a Bedrock stream becomes the events of the Anthropic API', async t => {
  const { gateway, bedrock } = await start(t)
  const stream = client(gateway.url).messages.stream(ASKED)
  t.equal(await stream.finalText(), 'Hello\n\u2028ü')
  t.equal(bedrock.seen[0]?.url, '/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/invoke-with-response-stream')
  t.notMatch(bedrock.seen[0]?.body, '"stream"')
  t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { status: 200, input_tokens: 7, output_tokens: 3 })
  const { text, headers } = await ask(gateway.url, { ...ASKED, stream: true })
  t.match(headers.get('content-type'), /^text\/event-stream/)
  const expected = EVENTS.map(event => (event.type === 'message_stop' ? { type: 'message_stop' } : event))
  t.equal(text, expected.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
})

t.test('an ARN can name the model, and beta features are sent in the body', async t => {
  const { gateway, bedrock } = await start(t, `
routes: [{ to: { upstream: aws, model: "${ARN}" } }]`)
  await ask(gateway.url, { ...ASKED, anthropic_beta: ['effort-2025-11-24'] }, '?beta=true', {
    'anthropic-beta': 'context-1m-2025-08-07, interleaved-thinking-2025-05-14',
  })
  t.equal(bedrock.seen[0]?.url, `/model/${encodeURIComponent(ARN)}/invoke`)
  t.match(JSON.parse(bedrock.seen[0]?.body ?? ''), {
    anthropic_beta: ['effort-2025-11-24', 'context-1m-2025-08-07', 'interleaved-thinking-2025-05-14'],
  })
})

t.test('beta features that Bedrock does not have are dropped, and the response lists them', async t => {
  const { gateway, bedrock } = await start(t, `
models:
  all: { accepts: { betas: ["*"] } }
  few: { accepts: { betas: [own-2027-01-01] } }
routes:
  - { model: strict, to: { upstream: aws, model: claude }, translate: strict }
  - { to: aws }`)
  const betas = async (model: string, path = '') => {
    const asked = { ...ASKED, model, anthropic_beta: ['in-body', 'own-2027-01-01'] }
    const header = 'claude-code-20250219,context-1m-2025-08-07, advanced-tool-use-2025-11-20'
    const { status, headers, text } = await ask(gateway.url, asked, path, { 'anthropic-beta': header })
    const sent = JSON.parse(bedrock.seen.at(-1)?.body ?? '{}') as { anthropic_beta?: string[] }
    return { status, dropped: headers.get('x-gateway-dropped'), sent: sent.anthropic_beta, text }
  }
  t.match(await betas('us.anthropic.claude-opus-4-6-v1'), {
    status: 200, sent: ['context-1m-2025-08-07', 'tool-search-tool-2025-10-19'],
    dropped: /^anthropic-beta\.claude-code-20250219, anthropic-beta\.in-body, anthropic-beta\.own-2027-01-01$/,
  })
  t.match(await betas('few'), { status: 200, sent: ['own-2027-01-01'] })
  t.match(await betas('all'), { sent: ['in-body', 'own-2027-01-01', 'claude-code-20250219', 'context-1m-2025-08-07', 'advanced-tool-use-2025-11-20'], dropped: null })
  const { length } = bedrock.seen
  t.match(await betas('strict'), { status: 400, text: /translation_lossy|anthropic-beta\.claude-code-20250219/ })
  t.equal(bedrock.seen.length, length)
})

t.test('Bedrock counts tokens', async t => {
  const { gateway, bedrock } = await start(t)
  t.strictSame(await client(gateway.url).messages.countTokens({ model: 'fast', messages: ASKED.messages }), { input_tokens: 42 })
  const { input } = JSON.parse(bedrock.seen[0]?.body ?? '') as { input: { invokeModel: { body: string } } }
  t.strictSame(JSON.parse(Buffer.from(input.invokeModel.body, 'base64').toString()), {
    messages: ASKED.messages, anthropic_version: 'bedrock-2023-05-31', max_tokens: 1,
  })
})

t.test('a request of a chat client is translated for Bedrock, with and without stream', async t => {
  const { gateway } = await start(t)
  const chat = { model: 'fast', messages: [{ role: 'user', content: 'Hi' }] }
  t.match(await (await post(gateway.url, '/v1/chat/completions', chat)).json(), { choices: [{ message: { content: 'Hello' } }] })
  const streamed = await (await post(gateway.url, '/v1/chat/completions', { ...chat, stream: true })).text()
  t.match(streamed, /"content":"Hel"/)
  t.match(streamed, /\[DONE\]/)
})

t.test('a request that Bedrock does not serve is refused', async t => {
  const { gateway, bedrock } = await start(t, 'routes: [{ to: aws }]')
  const batch = await post(gateway.url, '/v1/messages/batches', { requests: [] })
  t.equal(batch.status, 400)
  t.match(await batch.json(), { error: { message: 'the provider of the target does not serve other' } })
  const named = await ask(gateway.url, { ...ASKED, model: '..' })
  t.equal(named.status, 400)
  t.equal(bedrock.seen.length, 0)
})

t.test('a Bedrock exception becomes an error of the Anthropic API', async t => {
  const { gateway, bedrock } = await start(t)
  const cases = [
    [400, 'ValidationException', 'invalid_request_error'], [429, 'ThrottlingException', 'rate_limit_error'],
    [408, 'ModelTimeoutException', 'timeout_error'], [503, 'ServiceUnavailableException', 'overloaded_error'],
    [424, 'ModelErrorException', 'api_error'], [404, 'ResourceNotFoundException', 'not_found_error'],
  ] as const
  for (const [status, name, type] of cases) {
    bedrock.respond = res => sendException(res, status, name, `no ${ARN} today`)
    const { status: got, text } = await ask(gateway.url)
    t.equal(got, status)
    t.strictSame(JSON.parse(text), { type: 'error', error: { type, message: 'no arn:*** today' } })
  }
})

t.test('an exception in mid-stream becomes an error event, and an exception before the first event causes a retry', async t => {
  const { gateway, bedrock } = await start(t, `
routes: [{ to: [{ upstream: aws, model: one }, { upstream: aws, model: two }] }]`)
  bedrock.respond = res => sendFrames(res, [...EVENTS.slice(0, 3).map(chunkFrame), exceptionFrame('modelStreamErrorException', 'broken')])
  const { text } = await ask(gateway.url, { ...ASKED, stream: true })
  t.match(text, /"text":"Hel"/)
  t.ok(text.endsWith('event: error\ndata: {"type":"error","error":{"type":"api_error","message":"broken"}}\n\n'))
  t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { status: 200, end: 'error', input_tokens: 7, output_tokens: 1 })
  bedrock.respond = (res, { url }) => sendFrames(res, url.includes('/one/')
    ? [exceptionFrame('throttlingException', 'slow down')]
    : EVENTS.map(chunkFrame))
  const other = await ask(gateway.url, { ...ASKED, stream: true })
  t.match(other.text, /message_stop/)
  t.notMatch(other.text, /event: error/)
})

t.test('damaged and cut frames break the stream', async t => {
  const { gateway, bedrock } = await start(t)
  const frames = EVENTS.map(chunkFrame)
  const whole = Buffer.concat(frames)
  const third = frames.slice(0, 3).reduce((sum, { length }) => sum + length, 0)
  const damaged = (at: number) => {
    const bytes = Buffer.from(whole)
    bytes[third + at] = (bytes[third + at] as number) ^ 1
    return bytes
  }
  const giant = Buffer.alloc(16)
  giant.writeUInt32BE(0x7fffffff)
  const chunk = { ':event-type': 'chunk', ':message-type': 'event' }
  const before = (frame: Buffer) => Buffer.concat([whole.subarray(0, third), frame, frames.at(-1) as Buffer])
  const cases: (readonly [string, Buffer])[] = [
    ['giant length', before(giant)], ['a payload that is no JSON', before(eventFrame(chunk, PRIVATE))],
    ['an event that is no JSON', before(eventFrame(chunk, JSON.stringify({ bytes: Buffer.from(PRIVATE).toString('base64') })))],
    ['an event without bytes', before(eventFrame(chunk, '{"p":"abc"}'))],
    ['length', damaged(2)], ['prelude checksum', damaged(9)], ['header', damaged(20)], ['payload', damaged(100)],
    ['checksum', damaged((frames[3]?.length ?? 0) - 1)], ['cut', whole.subarray(0, third + 30)], ['no end', whole.subarray(0, third)],
  ]
  for (const [name, bytes] of cases) {
    bedrock.respond = res => {
      startFrames(res)
      res.end(bytes)
    }
    const events: string[] = []
    await t.rejects(async () => {
      for await (const event of await client(gateway.url).messages.create({ ...ASKED, stream: true })) events.push(event.type)
    }, name)
    t.strictSame(events, ['message_start', 'content_block_start', 'content_block_delta'], `${name}: what came before is passed on`)
  }
  const lines = () => gateway.logged.filter(({ msg }) => msg === 'exchange')
  await gateway.waitForLog(() => lines().length === cases.length)
  t.strictSame(lines().map(({ error, input_tokens: input, output_tokens: output }) => `${error} ${input} ${output}`), [
    ...Array<string>(9).fill('upstream_invalid 7 1'), ...Array<string>(2).fill('upstream_cut 7 1'),
  ])
  t.notMatch(JSON.stringify(gateway.logged), PRIVATE.slice(0, 4), 'what the frames say is not logged')
})

t.test('frames can arrive in pieces of 7 bytes', async t => {
  const { gateway, bedrock } = await start(t)
  bedrock.respond = res => {
    startFrames(res)
    res.socket?.setNoDelay(true)
    const bytes = Buffer.concat(EVENTS.map(chunkFrame))
    const send = (at: number): void => {
      if (at >= bytes.length) res.end()
      else res.write(bytes.subarray(at, at + 7), () => send(at + 7))
    }
    send(0)
  }
  t.equal(await client(gateway.url).messages.stream(ASKED).finalText(), 'Hello\n\u2028ü')
})

t.test('a compressed request is sent uncompressed to Bedrock', async t => {
  const { gateway, bedrock } = await start(t)
  const { gzipSync } = await import('node:zlib')
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json', 'content-encoding': 'gzip' },
    body: gzipSync(JSON.stringify(ASKED)),
  })
  t.equal(response.status, 200)
  t.equal(bedrock.seen[0]?.headers['content-encoding'], undefined)
})

async function start(t: Test, routes = 'routes: [{ model: fast, to: { upstream: aws, model: "us.anthropic.claude-sonnet-4-20250514-v1:0" } }]') {
  setAwsEnvironment(t, KEY_ENVIRONMENT)
  const bedrock = await startBedrock(t)
  const gateway = await startTestGateway(t, `
upstreams: { aws: { bedrock: { region: us-east-1, endpoint: "${bedrock.url}" }, auth: { aws: {} } } }
${routes}
`)
  return { bedrock, gateway }
}

function client(baseURL: string): Anthropic {
  return new Anthropic({ baseURL, apiKey: KEY, maxRetries: 0 })
}

async function ask(url: string, body: object = ASKED, query = '', headers: Record<string, string> = {}) {
  const response = await post(url, `/v1/messages${query}`, body, headers)
  return { status: response.status, headers: response.headers, text: await response.text().catch(() => '') }
}

function post(url: string, path: string, body: object, headers: Record<string, string> = {}) {
  return fetch(url + path, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
  })
}
