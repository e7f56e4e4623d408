import { asObject, asText } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { eventFrame } from '../aws.ts'
import { USAGE, fullName, objects, pieces, spoken, words } from './vendor.ts'
import type { Conversation, Faults, Turn, Vendor } from './vendor.ts'

const FIELDS = words('messages system inferenceConfig toolConfig additionalModelRequestFields additionalModelResponseFieldPaths guardrailConfig outputConfig'
  + ' performanceConfig promptVariables requestMetadata serviceTier')
const BLOCKS = words('text image document video toolUse toolResult reasoningContent cachePoint guardContent')
const PATH = /^\/model\/[^/]+\/converse(-stream)?$/

/**
 * Claude at Amazon Bedrock by Converse.
 *
 * Source: Amazon Bedrock API Reference, "Converse"; user guide, "Prompt caching" and "Extended thinking".
 */
export const converseVendor: Vendor = {
  protocol: 'converse',
  model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  settings: url => `bedrock: { region: us-east-1, endpoint: "${url}" }, auth: { aws: {} }`,
  isStream: ({ path }) => path.endsWith('/converse-stream'),
  read: (received, faults) => readRequest(received, faults, true),
  reportsReasoning: false,
  streamType: 'application/vnd.amazon.eventstream',
  body: (turn, number) => ({
    output: { message: { role: 'assistant', content: blocksOf(turn, number) } }, stopReason: stopReason(turn), usage: usage(), metrics: { latencyMs: 5 },
  }),
  stream: (turn, number) => Buffer.concat([
    frame('messageStart', { role: 'assistant' }),
    ...blocksOf(turn, number).flatMap((block, contentBlockIndex) => framesOf(block, contentBlockIndex)),
    frame('messageStop', { stopReason: stopReason(turn) }),
    frame('metadata', { usage: usage(), metrics: { latencyMs: 5 } }),
  ]),
  error: message => ({ message }),
}

/** Nova has marks of the cache in texts only, without a lifetime, and no thinking of Claude's. */
export const novaVendor: Vendor = {
  ...converseVendor,
  model: 'us.amazon.nova-pro-v1:0',
  read: (received, faults) => readRequest(received, faults, false),
  body: (turn, number) => converseVendor.body(spoken(turn), number),
  stream: (turn, number) => converseVendor.stream(spoken(turn), number),
}

function readRequest({ path, body }: Parameters<Vendor['read']>[0], faults: Faults, isClaude: boolean): Conversation {
  faults.expect(PATH.test(path), `no such path: ${path}`)
  faults.known(body, FIELDS, 'body')
  const config = asObject(body['inferenceConfig'])
  const own = asObject(body['additionalModelRequestFields'])
  faults.known(config, words('maxTokens temperature topP stopSequences'), 'inferenceConfig')
  faults.known(own, words(isClaude ? 'thinking top_k output_config anthropic_beta' : 'inferenceConfig reasoningConfig'), 'additionalModelRequestFields')
  const { temperature, topP, stopSequences } = config ?? {}
  faults.expect(Number(temperature ?? 0) <= 1, `temperature ${String(temperature)}`)
  faults.expect(!isClaude || temperature === undefined || topP === undefined, '`temperature` and `top_p` cannot both be specified for this model')
  faults.expect((stopSequences as string[] | undefined ?? []).every(text => text.trim() !== ''), 'a blank stop sequence')
  const thinks = asObject(own?.['thinking'])?.['type'] === 'enabled'
  faults.expect(!thinks || (temperature ?? 1) === 1, 'temperature with thinking')
  return { tools: readTools(body, isClaude, faults), ...readMessages(body, { isClaude, thinks }, faults) }
}

function readTools(body: JsonObject, isClaude: boolean, faults: Faults): string[] {
  const names: string[] = []
  const config = asObject(body['toolConfig'])
  for (const tool of objects(config?.['tools'])) {
    if ('cachePoint' in tool) faults.expect(isClaude, 'a cachePoint among tools')
    const spec = asObject(tool['toolSpec'])
    if (spec === null) continue
    const name = asText(spec['name']) ?? ''
    faults.known(spec, words('name description inputSchema strict'), name)
    faults.expect(/^[\w-]{1,64}$/.test(name), `tool name ${name}`)
    faults.expect(spec['description'] !== '', `${name}: empty description`)
    faults.expect(asObject(asObject(spec['inputSchema'])?.['json'])?.['type'] === 'object', `${name}: inputSchema.json.type must be object`)
    names.push(name)
  }
  faults.expect(config === null || names.length > 0, 'toolConfig without tools')
  return names
}

function readMessages(body: JsonObject, { isClaude, thinks }: { readonly isClaude: boolean, readonly thinks: boolean }, faults: Faults): Omit<Conversation, 'tools'> {
  let rounds = 0
  let calls: string[] = []
  let results: string[] = []
  const messages = objects(body['messages'])
  faults.expect(messages[0]?.['role'] === 'user', 'A conversation must start with a user message.')
  for (const [at, message] of messages.entries()) {
    const where = `messages[${at}]`
    const blocks = objects(message['content'])
    faults.expect(message['role'] === (at % 2 === 0 ? 'user' : 'assistant'), `${where}: role ${String(message['role'])}`)
    faults.expect(blocks.length > 0, `${where}: no content`)
    for (const [index, block] of blocks.entries()) {
      const [type = ''] = Object.keys(block)
      faults.expect(BLOCKS.has(type), `${where}: block ${type}`)
      if (type === 'text') faults.expect(/\S/.test(String(block['text'])), `${where}: blank text`)
      if (type === 'document') faults.expect(blocks.some(each => 'text' in each), `${where}: a document without a text`)
      const before = blocks[index - 1] ?? {}
      if (type === 'cachePoint') faults.expect((isClaude || asObject(block['cachePoint'])?.['ttl'] === undefined) && !(isClaude && 'document' in before), `${where}: cachePoint`)
    }
    const given = blocks.map(block => asObject(block['toolResult'])).filter(result => result !== null)
    faults.expect(given.map(({ toolUseId }) => toolUseId).sort().join() === calls.sort().join(), `${where}: results of other calls`)
    for (const { content } of given) faults.expect(objects(content).length > 0, `${where}: an empty result`)
    if (given.length > 0) results = given.map(({ content }) => objects(content).map(part => asText(part['text']) ?? '').join('\n'))
    calls = blocks.flatMap(block => asText(asObject(block['toolUse'])?.['toolUseId']) ?? [])
    for (const id of calls) faults.expect(/^[\w-]{1,64}$/.test(id), `${where}: call id ${id}`)
    if (calls.length === 0) continue
    rounds++
    faults.expect(body['toolConfig'] !== undefined, 'The toolConfig field must be defined when using toolUse and toolResult content blocks.')
    faults.expect(!thinks || 'reasoningContent' in (blocks[0] ?? {}), `${where}: calls without the thinking before them`)
  }
  return { rounds, results }
}

function blocksOf({ thinking, text, calls = [] }: Turn, number: number): JsonObject[] {
  return [
    ...thinking === undefined ? [] : [{ reasoningContent: { reasoningText: { text: thinking, signature: `signed ${thinking}` } } }],
    ...text === undefined ? [] : [{ text }],
    ...calls.map((call, at) => ({ toolUse: { toolUseId: `tooluse_${number}_${at}`, name: fullName(call), input: call.input } })),
  ]
}

function framesOf(block: JsonObject, contentBlockIndex: number): Buffer[] {
  const delta = (delta: JsonObject): Buffer => frame('contentBlockDelta', { contentBlockIndex, delta })
  const stop = frame('contentBlockStop', { contentBlockIndex })
  const use = asObject(block['toolUse'])
  if (use !== null) {
    const { toolUseId, name, input } = use
    return [frame('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId, name } } }), ...pieces(JSON.stringify(input)).map(part => delta({ toolUse: { input: part } })), stop]
  }
  const reasoning = asObject(asObject(block['reasoningContent'])?.['reasoningText'])
  if (reasoning === null) return [...pieces(String(block['text'])).map(text => delta({ text })), stop]
  const { text, signature } = reasoning
  return [...pieces(String(text)).map(part => delta({ reasoningContent: { text: part } })), delta({ reasoningContent: { signature } }), stop]
}

function frame(name: string, payload: JsonObject): Buffer {
  return eventFrame({ ':event-type': name, ':content-type': 'application/json', ':message-type': 'event' }, JSON.stringify(payload))
}

function stopReason({ calls }: Turn): string {
  return calls ? 'tool_use' : 'end_turn'
}

function usage(): JsonObject {
  return {
    inputTokens: USAGE.input - USAGE.cached, outputTokens: USAGE.output, totalTokens: USAGE.input + USAGE.output, cacheReadInputTokens: USAGE.cached,
  }
}
