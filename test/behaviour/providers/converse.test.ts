import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { OpenAI } from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import { eventFrame, exceptionFrame } from '../../support/aws.ts'
import {
  KEY_ENVIRONMENT, sendBody, sendException, sendFrames, setAwsEnvironment, startBedrock, startFrames,
} from '../../support/bedrock.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'

const MODEL = 'us.amazon.nova-lite-v1:0'
const USAGE = { inputTokens: 7, outputTokens: 3, totalTokens: 12, cacheReadInputTokens: 2 }
const WHOLE = {
  output: { message: { role: 'assistant', content: [{ text: 'Hello' }] } }, stopReason: 'end_turn', usage: USAGE, metrics: { latencyMs: 5 },
}
const TOOL = { type: 'function' as const, function: { name: 'look', description: 'Looks', parameters: { type: 'object', properties: { at: { type: 'string' } } } } }

function frame(name: string, payload: object): Buffer {
  return eventFrame(
    { ':event-type': name, ':content-type': 'application/json', ':message-type': 'event' }, JSON.stringify({ ...payload, p: 'abcdef' }),
  )
}

const FRAMES = [
  frame('messageStart', { role: 'assistant' }),
  frame('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'I think' } } }),
  frame('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'signed' } } }),
  frame('contentBlockStop', { contentBlockIndex: 0 }),
  frame('contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Hel' } }),
  frame('contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'lo' } }),
  frame('contentBlockStop', { contentBlockIndex: 1 }),
  frame('contentBlockStart', { contentBlockIndex: 2, start: { toolUse: { toolUseId: 'tooluse_1', name: 'look' } } }),
  frame('contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '{"at":' } } }),
  frame('contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '"it"}' } } }),
  frame('contentBlockStop', { contentBlockIndex: 2 }),
  frame('messageStop', { stopReason: 'tool_use' }),
  frame('metadata', { usage: USAGE, metrics: { latencyMs: 5 } }),
]

t.test('clients of every protocol get a response from Converse', async t => {
  const { gateway, bedrock } = await start(t)
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
  const chat = await openai.chat.completions.create({ model: 'fast', messages: [{ role: 'system', content: 'Be brief' }, { role: 'user', content: 'Hi' }], max_tokens: 9 })
  t.match(chat, { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }], usage: { prompt_tokens: 9, completion_tokens: 3 } })
  t.equal(bedrock.seen[0]?.url, `/model/${encodeURIComponent(MODEL)}/converse`)
  t.equal(bedrock.seen[0]?.fault, null)
  t.strictSame(JSON.parse(bedrock.seen[0]?.body ?? ''), {
    system: [{ text: 'Be brief' }], messages: [{ role: 'user', content: [{ text: 'Hi' }] }], inferenceConfig: { maxTokens: 9 },
  })
  t.equal((await openai.responses.create({ model: 'fast', input: 'Hi' })).output_text, 'Hello')
  const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: KEY, maxRetries: 0 })
  const message = await anthropic.messages.create({ model: 'fast', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] })
  t.match(message, { content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn', usage: { input_tokens: 7, cache_read_input_tokens: 2, output_tokens: 3 } })
  const google = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: gateway.url } })
  t.equal((await google.models.generateContent({ model: 'fast', contents: 'Hi' })).text, 'Hello')
  t.equal(bedrock.seen.length, 4)
  t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { status: 200, input_tokens: 9, output_tokens: 3 })
})

t.test('a messages client streams thinking, text and a tool call, and sends them back in the next turn', async t => {
  const { gateway, bedrock } = await start(t)
  bedrock.respond = res => sendFrames(res, FRAMES)
  const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: KEY, maxRetries: 0 })
  const message = await anthropic.messages.stream({ model: 'fast', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }).finalMessage()
  t.match(message, {
    content: [
      { type: 'thinking', thinking: 'I think' }, { type: 'text', text: 'Hello' },
      { type: 'tool_use', id: 'tooluse_1', name: 'look', input: { at: 'it' } },
    ],
    stop_reason: 'tool_use',
    usage: { output_tokens: 3 },
  })
  t.equal(bedrock.seen[0]?.url, `/model/${encodeURIComponent(MODEL)}/converse-stream`)
  t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { status: 200, input_tokens: 9, output_tokens: 3 })

  // The next turn sends thinking with its signature, and the result of the call.
  await anthropic.messages.stream({
    model: 'fast', max_tokens: 9, tools: [{ name: 'look', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'Hi' }, { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'tooluse_1', content: 'Nothing' }] },
    ],
  }).finalMessage()
  t.match(JSON.parse(bedrock.seen[1]?.body ?? ''), {
    messages: [
      { role: 'user' },
      { content: [{ reasoningContent: { reasoningText: { text: 'I think', signature: 'signed' } } }, { text: 'Hello' }, { toolUse: { toolUseId: 'tooluse_1', input: { at: 'it' } } }] },
      { content: [{ toolResult: { toolUseId: 'tooluse_1', content: [{ text: 'Nothing' }] } }] },
    ],
    toolConfig: { tools: [{ toolSpec: { name: 'look' } }] },
  })
})

t.test('a chat client streams tool calls, and sends their signature back in the next turn', async t => {
  const { gateway, bedrock } = await start(t)
  bedrock.respond = res => sendFrames(res, FRAMES)
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
  const completion = await openai.chat.completions.stream({
    model: 'fast', messages: [{ role: 'user', content: 'Hi' }], tools: [TOOL], tool_choice: 'required',
  }).finalChatCompletion()
  t.match(completion.choices[0], { finish_reason: 'tool_calls', message: { content: 'Hello', tool_calls: [{ function: { name: 'look', arguments: '{"at":"it"}' } }] } })
  t.match(JSON.parse(bedrock.seen[0]?.body ?? ''), {
    toolConfig: { tools: [{ toolSpec: { name: 'look', description: 'Looks', inputSchema: { json: { type: 'object' } } } }], toolChoice: { any: {} } },
  })
  // The client keeps only fields of its protocol; the signature is sent nevertheless.
  const call = completion.choices[0]?.message as OpenAI.ChatCompletionMessageParam & { tool_calls: { id: string }[] }
  await openai.chat.completions.stream({
    model: 'fast', tools: [TOOL],
    messages: [{ role: 'user', content: 'Hi' }, call, { role: 'tool', tool_call_id: call.tool_calls[0]?.id ?? '', content: 'Nothing' }],
  }).finalChatCompletion()
  t.match(JSON.parse(bedrock.seen[1]?.body ?? ''), {
    messages: [
      {}, { content: [{ reasoningContent: { reasoningText: { signature: 'signed' } } }, { text: 'Hello' }, { toolUse: { toolUseId: 'tooluse_1' } }] },
      { content: [{ toolResult: { toolUseId: 'tooluse_1', content: [{ text: 'Nothing' }] } }] },
    ],
  })
})

t.test('a chat client gets chat errors, also in mid-stream, and no [DONE] after a cut', async t => {
  const { gateway, bedrock } = await start(t)
  bedrock.respond = res => sendException(res, 429, 'ThrottlingException', 'Too many requests')
  const chat = { model: 'fast', stream: true, messages: [{ role: 'user', content: 'Hi' }] }
  const refused = await post(gateway.url, chat)
  t.equal(refused.status, 429)
  t.match(await refused.json(), { error: { message: 'Too many requests' } })
  bedrock.respond = res => sendFrames(res, [...FRAMES.slice(0, 5), exceptionFrame('modelStreamErrorException', 'broken')])
  const broken = await (await post(gateway.url, chat)).text().catch(() => '')
  t.match(broken, /"content":"Hel"/)
  t.match(broken, /"error":\{"message":"broken"/)
  t.notMatch(broken, /\[DONE\]/)
  bedrock.respond = res => {
    startFrames(res)
    res.end(Buffer.concat(FRAMES.slice(0, 6)))
  }
  const cut = await post(gateway.url, chat)
  t.notMatch(await cut.text().catch(() => ''), /\[DONE\]/)
  await gateway.waitForLog(({ error }) => error === 'upstream_cut')
})

async function start(t: Test) {
  setAwsEnvironment(t, KEY_ENVIRONMENT)
  const bedrock = await startBedrock(t)
  bedrock.respond = res => sendBody(res, WHOLE)
  const gateway = await startTestGateway(t, `
upstreams: { aws: { bedrock: { region: us-east-1, endpoint: "${bedrock.url}" }, auth: { aws: {} }, speaks: [converse] } }
routes: [{ model: fast, to: { upstream: aws, model: "${MODEL}" } }]
`)
  return { bedrock, gateway }
}

function post(url: string, body: object) {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }, body: JSON.stringify(body),
  })
}
