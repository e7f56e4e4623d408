import { asObject, asText } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { USAGE, fullName, objects, pieces, spoken, withModel, words } from './vendor.ts'
import type { Conversation, Faults, Turn, Vendor } from './vendor.ts'

const FIELDS = words('model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata modalities n'
  + ' parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed'
  + ' service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options')
/** `reasoning_content` is not OpenAI's; vLLM, DeepSeek and others have it. */
const MESSAGE_FIELDS = words('role content name refusal tool_calls tool_call_id reasoning_content')
const ROLES = words('system user assistant tool')
const OPENAI_MODEL = 'gpt-5'
const MISTRAL_FIELDS = words('model messages temperature top_p max_tokens stream stop random_seed metadata response_format tools tool_choice presence_penalty'
  + ' frequency_penalty n prediction parallel_tool_calls reasoning_effort prompt_mode guardrails prompt_cache_key safe_prompt')
const MISTRAL_MESSAGE_FIELDS = words('role content tool_calls tool_call_id prefix')

/** An OpenAI-compatible server with the strict chat template of open models: one system message, at the start. */
export const chatVendor: Vendor = {
  protocol: 'chat',
  isStream: ({ body }) => body['stream'] === true,
  read: ({ path, body }, faults) => {
    faults.expect(path === '/v1/chat/completions', `no such path: ${path}`)
    faults.known(body, FIELDS, 'body')
    faults.expect(body['max_tokens'] === undefined || body['max_completion_tokens'] === undefined, 'two bounds on tokens')
    faults.expect(body['stream_options'] === undefined || body['stream'] === true, 'stream_options without a stream')
    return { tools: readTools(body, faults), ...readMessages(objects(body['messages']), faults, body['model'] === OPENAI_MODEL) }
  },
  body: (turn, number) => ({
    id: `chatcmpl-${number}`, object: 'chat.completion', created: 1, model: 'qwen', usage: usage(),
    choices: [{ index: 0, finish_reason: finishReason(turn), message: {
      role: 'assistant', content: turn.text ?? null, ...turn.thinking !== undefined && { reasoning_content: turn.thinking },
      ...turn.calls && { tool_calls: toolCalls(turn, number) },
    } }],
  }),
  stream: (turn, number) => {
    const head = { id: `chatcmpl-${number}`, object: 'chat.completion.chunk', created: 1, model: 'qwen' }
    const chunk = (delta: JsonObject, finish_reason: string | null = null): JsonObject => ({ ...head, choices: [{ index: 0, delta, finish_reason }], usage: null })
    const chunks = [
      chunk({ role: 'assistant', content: '' }),
      ...pieces(turn.thinking ?? '').map(reasoning_content => chunk({ reasoning_content })),
      ...pieces(turn.text ?? '').map(content => chunk({ content })),
      ...toolCalls(turn, number).flatMap(({ function: { name, arguments: text }, ...call }, index) => [
        chunk({ tool_calls: [{ index, ...call, function: { name, arguments: '' } }] }),
        ...pieces(text).map(part => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
      ]),
      chunk({}, finishReason(turn)),
      { ...head, choices: [], usage: usage() },
    ]
    return chunks.map(data => `data: ${JSON.stringify(data)}\n\n`).join('') + 'data: [DONE]\n\n'
  },
  error: message => ({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
}

function readTools(body: JsonObject, faults: Faults): string[] {
  const names: string[] = []
  for (const tool of objects(body['tools'])) {
    faults.expect(tool['type'] === 'function', `tool of type ${String(tool['type'])}`)
    const definition = asObject(tool['function'])
    faults.known(definition, words('name description parameters strict'), 'function')
    const name = asText(definition?.['name']) ?? ''
    faults.expect(/^[\w-]{1,64}$/.test(name), `tool name ${name}`)
    faults.expect(!names.includes(name), `two tools ${name}`)
    faults.expect(asObject(definition?.['parameters'])?.['type'] === 'object', `${name}: parameters are no object`)
    names.push(name)
  }
  faults.expect(body['tools'] === undefined || names.length > 0, 'an empty list of tools')
  faults.expect(names.length > 0 || (body['tool_choice'] ?? body['parallel_tool_calls']) === undefined, 'a tool choice without tools')
  return names
}

function readMessages(messages: readonly JsonObject[], faults: Faults, isOpenai: boolean): Omit<Conversation, 'tools'> {
  let rounds = 0
  /** Results of the last calls, by id; null = missing. */
  let results = new Map<string, string | null>()
  const seen = new Set<string>()
  let before = ''
  for (const [at, message] of messages.entries()) {
    const { role, content } = message as { role: string, content: unknown }
    const where = `messages[${at}]`
    faults.known(message, MESSAGE_FIELDS, where)
    faults.expect(ROLES.has(role), `${where}: role ${role}`)
    faults.expect(role !== 'system' || at === 0 || isOpenai, `${where}: system message in mid-conversation`)
    faults.expect(role === 'tool' || ![...results.values()].includes(null), `${where}: calls without a result before it`)
    faults.expect(role !== before || role === 'tool' || isOpenai, `${where}: ${role} after ${before}`)
    if (role === 'tool') {
      const id = asText(message['tool_call_id']) ?? ''
      faults.expect(results.get(id) === null, `${where}: result of an unknown call ${id}`)
      results.set(id, textOf(content, where, faults))
    } else if (role !== 'assistant' || content !== null) {
      const text = textOf(content, where, faults)
      faults.expect(text !== '' || objects(content).some(part => part['type'] !== 'text'), `${where}: empty content`)
    }
    const calls = objects(message['tool_calls'])
    faults.expect(message['tool_calls'] === undefined || (role === 'assistant' && calls.length > 0), `${where}: tool_calls`)
    faults.expect(role !== 'assistant' || content !== null || calls.length > 0, `${where}: neither content nor calls`)
    if (calls.length > 0) {
      rounds++
      results = new Map()
    }
    for (const call of calls) {
      const id = asText(call['id']) ?? ''
      faults.expect(id !== '' && id.length <= 40 && !seen.has(id), `${where}: call id ${id}`)
      faults.expect(isJson(asText(asObject(call['function'])?.['arguments'])), `${where}: arguments of ${id}`)
      seen.add(id)
      results.set(id, null)
    }
    before = role
  }
  faults.expect(['user', 'tool'].includes(before), `the last message is of role ${before}`)
  return { rounds, results: [...results.values()].map(String) }
}

function textOf(content: unknown, where: string, faults: Faults): string {
  if (typeof content === 'string') return content
  const parts = objects(content)
  for (const part of parts) {
    faults.known(part, words(part['type'] === 'text' ? 'type text' : 'type image_url file input_audio thinking'), `${where}: part`)
    faults.expect(part['type'] !== 'text' || part['text'] !== '', `${where}: empty text`)
  }
  return parts.map(part => asText(part['text']) ?? '').join('\n')
}

function isJson(text: string | null | undefined): boolean {
  try {
    return typeof JSON.parse(text ?? '') === 'object'
  } catch {
    return false // what the fault says
  }
}

/** Ids as some servers write them, which other protocols refuse. */
function toolCalls({ calls = [] }: Turn, number: number): { id: string, type: string, function: { name: string, arguments: string } }[] {
  return calls.map((call, at) => ({
    id: `functions.${call.name}:${number}${at}`, type: 'function', function: { name: fullName(call), arguments: JSON.stringify(call.input) },
  }))
}

function finishReason({ calls }: Turn): string {
  return calls ? 'tool_calls' : 'stop'
}

function usage(): JsonObject {
  return {
    prompt_tokens: USAGE.input, completion_tokens: USAGE.output, total_tokens: USAGE.input + USAGE.output,
    prompt_tokens_details: { cached_tokens: USAGE.cached }, completion_tokens_details: { reasoning_tokens: USAGE.reasoning },
  }
}

/** OpenAI's API with a model that reasons: instructions stand anywhere, and it refuses sampling and stop sequences. */
export const openaiVendor: Vendor = withModel(chatVendor, {
  model: OPENAI_MODEL,
  accepts: '{ max_tokens: max_completion_tokens, system: anywhere }',
  body: (turn, number) => chatVendor.body(spoken(turn), number),
  stream: (turn, number) => chatVendor.stream(spoken(turn), number),
}, (body, faults) => {
  faults.expect(body['max_tokens'] === undefined, 'max_tokens: use max_completion_tokens')
  for (const field of ['temperature', 'top_p']) faults.expect((body[field] ?? 1) === 1, `${field}: only 1`)
  faults.expect(body['stop'] === undefined, 'stop is not supported with this model')
  faults.expect(['minimal', 'low', 'medium', 'high'].includes(asText(body['reasoning_effort']) ?? 'low'), `reasoning_effort ${String(body['reasoning_effort'])}`)
  for (const message of objects(body['messages'])) faults.expect(message['reasoning_content'] === undefined, 'reasoning_content')
})


/** Mistral's API (mistralai/client-python, ChatCompletionRequest; mistral-common, the order of messages). */
export const mistralVendor: Vendor = {
  ...withModel(chatVendor, {
    model: 'mistral-large-latest',
    accepts: '{ without: [user, service_tier, verbosity, name, stream_options] }',
    status: 422,
    body: (turn, number) => withContentThinking(chatVendor.body(spoken(turn), number), turn),
    stream: (turn, number) => contentThinking(turn, number) + String(chatVendor.stream(spoken(turn), number)),
  }, (body, faults) => {
    faults.known(body, MISTRAL_FIELDS, 'body')
    let before = ''
    for (const message of objects(body['messages'])) {
      faults.known(message, MISTRAL_MESSAGE_FIELDS, 'message')
      faults.expect(message['role'] !== 'user' || before !== 'tool', "Unexpected role 'user' after role 'tool'")
      const ids = [...objects(message['tool_calls']).map(({ id }) => id), ...message['role'] === 'tool' ? [message['tool_call_id']] : []]
      for (const id of ids) faults.expect(/^[a-zA-Z0-9]{9}$/.test(String(id)), `Tool call id was ${String(id)} but must be a-z, A-Z, 0-9, with a length of 9.`)
      before = String(message['role'])
    }
  }),
  error: message => ({ object: 'error', message: { detail: [{ type: 'extra_forbidden', loc: ['body'], msg: message }] }, type: 'invalid_request_error', param: null, code: null }),
}

/** DeepSeek's API, which supports JSON output without a schema. */
export const deepseekVendor: Vendor = withModel(chatVendor, { model: 'deepseek-chat', accepts: '{ without: [json_schema] }' }, (body, faults) => {
  faults.expect(asObject(body['response_format'])?.['type'] !== 'json_schema', 'This response_format type is unavailable now')
})

/** Mistral returns thinking in the content. */
function thinkingPart(text: string): JsonObject {
  return { type: 'thinking', thinking: [{ type: 'text', text }] }
}

function contentThinking({ thinking }: Turn, number: number): string {
  if (thinking === undefined) return ''
  return pieces(thinking).map(text => `data: ${JSON.stringify({ id: `chatcmpl-${number}`, choices: [{ index: 0, delta: { role: 'assistant', content: [thinkingPart(text)] }, finish_reason: null }] })}\n\n`).join('')
}

function withContentThinking(body: JsonObject, { thinking }: Turn): JsonObject {
  if (thinking === undefined) return body
  const [choice] = objects(body['choices'])
  const message = asObject(choice?.['message']) ?? {}
  const text = message['content']
  const content = [thinkingPart(thinking), ...typeof text === 'string' ? [{ type: 'text', text }] : []]
  return { ...body, choices: [{ ...choice, message: { ...message, content } }] }
}
