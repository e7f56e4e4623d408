import { asList, asObject, asText } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { chunkFrame } from '../aws.ts'
import { USAGE, fullName, objects, pieces, withModel, words } from './vendor.ts'
import type { Conversation, Faults, Turn, Vendor } from './vendor.ts'

const FIELDS = words('model messages max_tokens cache_control container context_management diagnostics inference_geo mcp_servers metadata output_config'
  + ' service_tier stop_sequences stream system temperature thinking tool_choice tools top_k top_p')
const BLOCKS: Readonly<Record<string, ReadonlySet<string>>> = {
  text: words('type text cache_control citations'), image: words('type source cache_control'), document: words('type source cache_control citations context title'),
  tool_use: words('type id name input cache_control caller'), tool_result: words('type tool_use_id content is_error cache_control'),
  thinking: words('type thinking signature'), redacted_thinking: words('type data'),
}
/** Maximum number of cache marks in one request. */
const MARKS = 4
const LEAST_BUDGET = 1024

/** Anthropic's API. */
export const messagesVendor: Vendor = {
  protocol: 'messages',
  isStream: ({ body }) => body['stream'] === true,
  read: ({ path, headers, body }, faults) => {
    faults.expect(path.split('?')[0] === '/v1/messages', `no such path: ${path}`)
    faults.expect(headers['anthropic-version'] !== undefined, 'no anthropic-version')
    faults.known(body, FIELDS, 'body')
    const { max_tokens: bound, thinking } = body
    faults.expect(typeof bound === 'number' && bound > 0, `max_tokens ${String(bound)}`)
    const budget = asObject(thinking)?.['budget_tokens']
    faults.expect(budget === undefined || (Number(budget) >= LEAST_BUDGET && Number(budget) < Number(bound)), `budget_tokens ${String(budget)}`)
    const thinks = ['enabled', 'adaptive'].includes(asText(asObject(thinking)?.['type']) ?? '')
    faults.expect(!thinks || (body['temperature'] ?? 1) === 1, 'temperature with thinking')
    faults.expect(!thinks || !['any', 'tool'].includes(asText(asObject(body['tool_choice'])?.['type']) ?? ''), 'forced tool with thinking')
    faults.expect(JSON.stringify(body).split('"cache_control":{').length - 1 <= MARKS, 'too many cache_control marks')
    return { tools: readTools(body, faults), ...readMessages(objects(body['messages']), asText(asObject(thinking)?.['type']) === 'enabled', faults) }
  },
  body: (turn, number) => ({
    id: `msg_${number}`, type: 'message', role: 'assistant', model: 'claude', content: blocksOf(turn, number),
    stop_reason: stopReason(turn), stop_sequence: null, usage: { ...inputUsage(), ...outputUsage() },
  }),
  stream: (turn, number) => eventsOf(turn, number).map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
  count: ({ path }) => path.startsWith('/v1/messages/count_tokens') ? { input_tokens: USAGE.input } : null,
  error: message => ({ type: 'error', error: { type: 'invalid_request_error', message }, request_id: 'req_1' }),
  refusal: ({ body }) => body['thread'] === undefined || body['thinking'] === undefined ? null : {
    type: 'error', request_id: 'req_1', error: {
      type: 'invalid_request_error', message: 'thinking', details: { error_code: 'thread_unsupported_request', unsupported: ['thinking'] },
    },
  },
}

function eventsOf(turn: Turn, number: number): (JsonObject & { readonly type: string })[] {
  return [
    { type: 'message_start', message: { ...messagesVendor.body({}, number), stop_reason: null, usage: { ...inputUsage(), output_tokens: 1 } } },
    { type: 'ping' },
    ...blocksOf(turn, number).flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: { ...block, ...EMPTY[block.type] } },
      ...deltasOf(block).map(delta => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: stopReason(turn), stop_sequence: null }, usage: outputUsage() },
    { type: 'message_stop' },
  ]
}

function readTools(body: JsonObject, faults: Faults): string[] {
  const names: string[] = []
  for (const tool of objects(body['tools'])) {
    const name = asText(tool['name']) ?? ''
    faults.expect(/^[\w-]{1,128}$/.test(name), `tool name ${name}`)
    faults.expect(!names.includes(name), `two tools ${name}`)
    names.push(name)
    // Others are Anthropic's own.
    if ((tool['type'] ?? 'custom') !== 'custom') continue
    faults.known(tool, words('type name description input_schema cache_control strict eager_input_streaming defer_loading allowed_callers input_examples'), name)
    const schema = asObject(tool['input_schema'])
    faults.expect(schema?.['type'] === 'object', `${name}: input_schema is no object`)
    for (const keyword of ['anyOf', 'oneOf', 'allOf']) faults.expect(schema?.[keyword] === undefined, `${name}: ${keyword} at the top`)
  }
  return names
}

function readMessages(messages: readonly JsonObject[], thinks: boolean, faults: Faults): Omit<Conversation, 'tools'> {
  let rounds = 0
  let calls: string[] = []
  let results: string[] = []
  const seen = new Set<string>()
  for (const [at, message] of messages.entries()) {
    const where = `messages[${at}]`
    faults.known(message, words('role content'), where)
    faults.expect(message['role'] === (at % 2 === 0 ? 'user' : 'assistant'), `${where}: role ${String(message['role'])}`)
    const blocks = typeof message['content'] === 'string' ? [{ type: 'text', text: message['content'] }] : objects(message['content']) as { type: string }[]
    faults.expect(blocks.length > 0, `${where}: no content`)
    for (const block of blocks) checkBlock(block, where, faults)
    const given = blocks.filter(({ type }) => type === 'tool_result') as unknown as { tool_use_id: string, content: unknown }[]
    faults.expect(same(given.map(({ tool_use_id: id }) => id).sort(), calls.sort()), `${where}: results ${given.map(({ tool_use_id: id }) => id).join()} of calls ${calls.join()}`)
    faults.expect(blocks.slice(0, given.length).every(({ type }) => type === 'tool_result'), `${where}: results are not first`)
    if (given.length > 0) results = given.map(({ content }) => typeof content === 'string' ? content : objects(content).map(part => asText(part['text']) ?? '').join('\n'))
    calls = (blocks.filter(({ type }) => type === 'tool_use') as unknown as { id: string }[]).map(({ id }) => id)
    for (const id of calls) faults.expect(/^[\w-]+$/.test(id) && !seen.has(id), `${where}: call id ${id}`)
    calls.forEach(id => seen.add(id))
    if (calls.length === 0) continue
    rounds++
    faults.expect(!thinks || (blocks[0]?.type ?? '').endsWith('thinking'), `${where}: calls without the thinking before them`)
  }
  faults.expect(messages.length % 2 === 1, 'the last message is of the assistant')
  return { rounds, results }
}

function checkBlock(block: JsonObject & { readonly type: string }, where: string, faults: Faults): void {
  const { type } = block
  faults.expect(type in BLOCKS, `${where}: block ${type}`)
  faults.known(block, BLOCKS[type] ?? new Set(), `${where}: ${type}`)
  if (type === 'text') faults.expect(/\S/.test(asText(block['text']) ?? ''), `${where}: empty text`)
  if (type === 'thinking') faults.expect(block['signature'] === signatureOf(asText(block['thinking']) ?? ''), `${where}: signature ${String(block['signature'])}`)
  if (type === 'redacted_thinking') faults.expect(false, `${where}: redacted thinking that was not made here`)
  if (type === 'tool_use') faults.expect(asObject(block['input']) !== null, `${where}: input is no object`)
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, at) => id === other[at])
}

/** As Anthropic's, it fits one text alone. */
function signatureOf(thinking: string): string {
  return Buffer.from(`signed ${thinking}`).toString('base64')
}

const EMPTY: Readonly<Record<string, JsonObject>> = { thinking: { thinking: '', signature: '' }, text: { text: '' }, tool_use: { input: {} } }

function blocksOf({ thinking, text, calls = [] }: Turn, number: number): (JsonObject & { readonly type: string })[] {
  return [
    ...thinking === undefined ? [] : [{ type: 'thinking', thinking, signature: signatureOf(thinking) }],
    ...text === undefined ? [] : [{ type: 'text', text }],
    ...calls.map((call, at) => ({ type: 'tool_use', id: `toolu_${number}_${at}`, name: fullName(call), input: call.input })),
  ]
}

function deltasOf(block: JsonObject & { readonly type: string }): JsonObject[] {
  if (block.type === 'text') return pieces(String(block['text'])).map(text => ({ type: 'text_delta', text }))
  if (block.type === 'tool_use') return pieces(JSON.stringify(block['input'])).map(part => ({ type: 'input_json_delta', partial_json: part }))
  return [...pieces(String(block['thinking'])).map(thinking => ({ type: 'thinking_delta', thinking })), { type: 'signature_delta', signature: block['signature'] }]
}

function stopReason({ calls }: Turn): string {
  return calls ? 'tool_use' : 'end_turn'
}

function inputUsage(): JsonObject {
  return { input_tokens: USAGE.input - USAGE.cached, cache_read_input_tokens: USAGE.cached, cache_creation_input_tokens: 0 }
}

function outputUsage(): JsonObject {
  return { output_tokens: USAGE.output, output_tokens_details: { thinking_tokens: USAGE.reasoning } }
}

/** Claude from Opus 4.7 on (@anthropic-ai/sdk, MessageCreateParams): no sampling, and thinking by an effort. */
export const newClaudeVendor: Vendor = withModel(messagesVendor, { model: 'claude-opus-4-7' }, checkNewClaude)

export function checkNewClaude(body: JsonObject, faults: Faults): void {
  faults.expect((body['temperature'] ?? 1) === 1, 'temperature is deprecated for this model')
  faults.expect(Number(body['top_p'] ?? 1) >= 0.99, 'top_p is deprecated for this model')
  faults.expect(body['top_k'] === undefined, 'top_k is deprecated for this model')
  faults.expect(asObject(body['thinking'])?.['type'] !== 'enabled', 'thinking.type.enabled is not supported for this model')
}

/** Bedrock's own betas of Anthropic's API, of those that clients send (Amazon Bedrock user guide, "Anthropic Claude Messages API"). */
const BETAS = words('computer-use-2025-01-24 token-efficient-tools-2025-02-19 interleaved-thinking-2025-05-14 output-128k-2025-02-19 context-1m-2025-08-07'
  + ' context-management-2025-06-27 effort-2025-11-24 tool-search-tool-2025-10-19 tool-examples-2025-10-29 fine-grained-tool-streaming-2025-05-14'
  + ' compact-2026-01-12 mid-conversation-tool-changes-2026-07-01 mid-conversation-output-config-2026-07-01 thinking-display-updates-2026-08-18')
const INVOKED = /^\/model\/[^/]+\/invoke(-with-response-stream)?$/

/** Claude at Amazon Bedrock by InvokeModel: the model stands in the path, betas in the body, and one that is unknown is refused. */
export const invokeVendor: Vendor = {
  ...messagesVendor,
  model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  settings: url => `bedrock: { region: us-east-1, endpoint: "${url}" }, auth: { aws: {} }`,
  isStream: ({ path }) => path.endsWith('/invoke-with-response-stream'),
  read: ({ path, headers, body: { anthropic_version: version, anthropic_beta: betas, ...body } }, faults) => {
    faults.expect(INVOKED.test(path), `no such path: ${path}`)
    faults.expect(version === 'bedrock-2023-05-31', `anthropic_version ${String(version)}`)
    for (const member of ['model', 'stream']) faults.expect(!(member in body), `${member}: Extra inputs are not permitted`)
    for (const beta of asList(betas)) faults.expect(BETAS.has(String(beta)), `invalid beta flag: ${String(beta)}`)
    return messagesVendor.read({ path: '/v1/messages', headers: { ...headers, 'anthropic-version': '2023-06-01' }, body }, faults)
  },
  streamType: 'application/vnd.amazon.eventstream',
  stream: (turn, number) => Buffer.concat(eventsOf(turn, number).map(chunkFrame)),
  count: ({ path }) => path.endsWith('/count-tokens') ? { inputTokens: USAGE.input } : null,
  error: message => ({ message }),
}
