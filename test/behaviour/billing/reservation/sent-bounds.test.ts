import t from 'tap'
import { eventFrame } from '../../../support/aws.ts'
import { KEY_ENVIRONMENT, sendFrames, setAwsEnvironment, startBedrock } from '../../../support/bedrock.ts'
import { KEY, startTestGateway } from '../../../support/gateway.ts'
import type { TestGateway } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'

/* Which bound of the output is reserved, at endpoints where it stands elsewhere or where there is no output. */

/** The budget is enough for 10,000 output tokens. */
const LIMITS = 'limits: { budget: { usd: 0.01, per: total } }\nmodels: { m: { price: { input: 0, output: 1 } } }'
const MESSAGES = [{ role: 'user', content: 'hi' }]
const CONTENTS = [{ role: 'user', parts: [{ text: 'hi' }] }]
const FRAMES = [
  ['messageStart', { role: 'assistant' }], ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hi' } }],
  ['messageStop', { stopReason: 'end_turn' }], ['metadata', { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }],
].map(([name, payload]) => eventFrame({ ':event-type': name as string, ':content-type': 'application/json', ':message-type': 'event' }, JSON.stringify(payload)))

/** At endpoints without output. */
const CASES: readonly (readonly [path: string, body: object])[] = [
  ['/v1/messages/count_tokens', { model: 'm', max_tokens: 20_000, messages: MESSAGES }],
  ['/v1beta/models/m:countTokens', { contents: CONTENTS, generationConfig: { maxOutputTokens: 20_000 } }],
  ['/v1/embeddings', { model: 'm', input: 'hi', max_tokens: 20_000 }],
  ['/v1beta/models/m:embedContent', { content: CONTENTS[0], generationConfig: { maxOutputTokens: 20_000 } }],
]

for (const [path, body] of CASES) {
  t.test(`${path} has no output, so an output bound reserves nothing`, async t => {
    const seen: string[] = []
    const upstream = await startUpstream(t, async (req, res) => {
      seen.push((await bodyOf(req)).toString())
      res.setHeader('content-type', 'application/json').end('{"usage":{"prompt_tokens":1,"total_tokens":1}}')
    })
    const gateway = await startTestGateway(t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\n${LIMITS}`)
    const text = JSON.stringify(body)
    t.equal(await ask(gateway, path, text), 200)
    t.strictSame(seen, [text])
  })
}

/** For a stream of Bedrock's Converse. */
const STREAMS: readonly (readonly [path: string, body: object, status: number])[] = [
  ['/v1/chat/completions', { max_completion_tokens: 9000 }, 200],
  ['/v1/chat/completions', { max_completion_tokens: 20_000 }, 429],
  ['/v1/chat/completions', { max_completion_tokens: '9000' }, 400],
  ['/v1/messages', { max_tokens: 9000 }, 200],
  ['/v1/messages', { max_tokens: 20_000 }, 429],
]

for (const [path, bound, status] of STREAMS) {
  t.test(`a Converse stream for ${path} with ${JSON.stringify(bound)} gets ${status}`, async t => {
    setAwsEnvironment(t, KEY_ENVIRONMENT)
    const bedrock = await startBedrock(t)
    bedrock.respond = res => sendFrames(res, FRAMES)
    const gateway = await startTestGateway(t, `
upstreams: { up: { bedrock: { region: us-east-1, endpoint: "${bedrock.url}" }, speaks: [converse], auth: { aws: {} } } }
routes: [{ to: up }]
${LIMITS}`)
    t.equal(await ask(gateway, path, JSON.stringify({ model: 'm', stream: true, messages: MESSAGES, ...bound })), status)
    t.strictSame(bedrock.seen.map(({ url, body }) => [url, JSON.parse(body).inferenceConfig]), status === 200 ? [['/model/m/converse-stream', { maxTokens: 9000 }]] : [])
  })
}

/** @returns the status */
async function ask({ url }: TestGateway, path: string, body: string): Promise<number> {
  const response = await fetch(url + path, { method: 'POST', body, headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' } })
  await response.text()
  return response.status
}
