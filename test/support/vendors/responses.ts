import { asList, asObject, asText } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { USAGE, objects, pieces, withModel, words } from './vendor.ts'
import type { Conversation, Faults, Turn, Vendor } from './vendor.ts'

const FIELDS = words('model input background client_metadata context_management conversation include instructions max_output_tokens max_tool_calls metadata moderation'
  + ' parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store'
  + ' stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user')
const PREFIXES: Readonly<Record<string, string>> = { message: 'msg_', reasoning: 'rs_', function_call: 'fc_', custom_tool_call: 'ctc_' }

/** OpenAI's API of responses. */
export const responsesVendor: Vendor = {
  protocol: 'responses',
  isStream: ({ body }) => body['stream'] === true,
  read: ({ path, body }, faults) => {
    faults.expect(path === '/v1/responses', `no such path: ${path}`)
    faults.known(body, FIELDS, 'body')
    const input = typeof body['input'] === 'string' ? [{ role: 'user', content: body['input'] }] : objects(body['input'])
    const tools = [...objects(body['tools']), ...input.flatMap(item => ['additional_tools', 'tool_search_output'].includes(String(item['type'])) ? objects(item['tools']) : [])]
    return { tools: readTools(tools, faults), ...readItems(input, faults) }
  },
  body: (turn, number) => ({ ...skeleton(number), status: 'completed', output: itemsOf(turn, number), usage: usage() }),
  stream: (turn, number) => {
    const created = { ...skeleton(number), status: 'in_progress', output: [], usage: null }
    const events: JsonObject[] = [
      { type: 'response.created', response: created }, { type: 'response.in_progress', response: created },
      ...itemsOf(turn, number).flatMap(eventsOf),
      { type: 'response.completed', response: responsesVendor.body(turn, number) },
    ]
    return events.map((event, sequence_number) => `event: ${String(event['type'])}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`).join('')
  },
  error: message => ({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
}

function readTools(tools: readonly JsonObject[], faults: Faults): string[] {
  const names: string[] = []
  for (const tool of tools) {
    if (tool['type'] === 'namespace') names.push(...readTools(objects(tool['tools']), faults))
    if (tool['type'] !== 'function' && tool['type'] !== 'custom') continue
    const name = asText(tool['name']) ?? ''
    faults.expect(/^[\w-]{1,128}$/.test(name), `tool name ${name}`)
    faults.expect(!names.includes(name), `two tools ${name}`)
    names.push(name)
    if (tool['type'] === 'function') faults.expect(asObject(tool['parameters'])?.['type'] === 'object', `${name}: parameters are no object`)
  }
  return names
}

function readItems(items: readonly JsonObject[], faults: Faults): Omit<Conversation, 'tools'> {
  let rounds = 0
  let results = new Map<string, string | null>()
  const seen = new Set<string>()
  let before = ''
  for (const [at, item] of items.entries()) {
    const type = asText(item['type']) ?? 'message'
    const where = `input[${at}]`
    const id = asText(item['id'])
    faults.expect(id === null || id.startsWith(PREFIXES[type] ?? ''), `${where}: id ${id} of a ${type}`)
    if (type === 'reasoning') faults.expect(item['encrypted_content'] === encrypted(objects(item['summary']).map(({ text }) => text).join('')), `${where}: encrypted_content`)
    const isCall = ['function_call', 'custom_tool_call', 'tool_search_call'].includes(type)
    if (isCall) {
      const callId = asText(item['call_id']) ?? ''
      faults.expect(callId !== '' && callId.length <= 64 && !seen.has(callId), `${where}: call id ${callId}`)
      if (before !== 'call') {
        rounds++
        results = new Map()
      }
      seen.add(callId)
      results.set(callId, null)
    } else if (['function_call_output', 'custom_tool_call_output', 'tool_search_output'].includes(type)) {
      const callId = asText(item['call_id']) ?? ''
      faults.expect(results.get(callId) === null, `${where}: result of an unknown call ${callId}`)
      const { output } = item
      if (type === 'tool_search_output') results.set(callId, JSON.stringify(item['tools']))
      else results.set(callId, typeof output === 'string' ? output : objects(output).map(part => asText(part['text']) ?? '').join('\n'))
    } else if (type === 'message') {
      faults.expect(['user', 'assistant', 'system', 'developer'].includes(asText(item['role']) ?? ''), `${where}: role`)
      faults.expect(typeof item['content'] === 'string' || asList(item['content']).length > 0, `${where}: no content`)
      const kind = item['role'] === 'assistant' ? ['output_text', 'refusal'] : ['input_text', 'input_image', 'input_file']
      for (const part of objects(item['content'])) faults.expect(kind.includes(asText(part['type']) ?? ''), `${where}: part ${String(part['type'])}`)
    } else {
      faults.expect(type === 'reasoning' || type === 'additional_tools' || type === 'agent_message', `${where}: item ${type}`)
    }
    before = isCall ? 'call' : type
  }
  faults.expect(before !== 'reasoning', 'reasoning without what follows it')
  faults.expect(![...results.values()].includes(null), 'calls without a result')
  return { rounds, results: [...results.values()].map(String) }
}

function encrypted(text: string): string {
  return Buffer.from(`encrypted ${text}`).toString('base64')
}

function itemsOf({ thinking, text, calls = [] }: Turn, number: number): JsonObject[] {
  return [
    ...thinking === undefined ? [] : [{
      type: 'reasoning', id: `rs_${number}`, summary: [{ type: 'summary_text', text: thinking }], encrypted_content: encrypted(thinking),
    }],
    ...text === undefined ? [] : [{
      type: 'message', id: `msg_${number}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
    }],
    ...calls.map(({ name, namespace, input, isFreeform = false, isToolSearch = false }, at) => isToolSearch ? {
      type: 'tool_search_call', id: `tsc_${number}_${at}`, call_id: `call_${number}_${at}`, status: 'completed', execution: 'client', arguments: input,
    } : ({
      call_id: `call_${number}_${at}`, name, ...namespace !== undefined && { namespace }, status: 'completed', ...isFreeform
        ? { type: 'custom_tool_call', id: `ctc_${number}_${at}`, input: Object.values(input)[0] }
        : { type: 'function_call', id: `fc_${number}_${at}`, arguments: JSON.stringify(input) },
    })),
  ]
}

function eventsOf(item: JsonObject, output_index: number): JsonObject[] {
  const at = { output_index, item_id: item['id'] }
  const added = (more: JsonObject): JsonObject => ({ type: 'response.output_item.added', output_index, item: { ...item, ...more } })
  const done = { type: 'response.output_item.done', output_index, item }
  if (item['type'] === 'tool_search_call') return [added({ status: 'in_progress', arguments: {} }), done]
  if (item['call_id'] !== undefined) {
    const [member, event] = item['type'] === 'function_call' ? ['arguments', 'function_call_arguments'] : ['input', 'custom_tool_call_input']
    const text = String(item[member])
    return [
      added({ [member]: '', status: 'in_progress' }),
      ...pieces(text).map(delta => ({ type: `response.${event}.delta`, ...at, delta })),
      { type: `response.${event}.done`, ...at, [member]: text }, done,
    ]
  }
  if (item['type'] === 'message') {
    const part = objects(item['content'])[0] as JsonObject
    const place = { ...at, content_index: 0 }
    return [
      added({ content: [], status: 'in_progress' }),
      { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
      ...pieces(String(part['text'])).map(delta => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })),
      { type: 'response.output_text.done', ...place, text: part['text'], logprobs: [] },
      { type: 'response.content_part.done', ...place, part }, done,
    ]
  }
  const part = objects(item['summary'])[0] as JsonObject
  const place = { ...at, summary_index: 0 }
  return [
    added({ summary: [], encrypted_content: '' }),
    { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
    ...pieces(String(part['text'])).map(delta => ({ type: 'response.reasoning_summary_text.delta', ...place, delta })),
    { type: 'response.reasoning_summary_text.done', ...place, text: part['text'] },
    { type: 'response.reasoning_summary_part.done', ...place, part }, done,
  ]
}

function skeleton(number: number): JsonObject {
  return {
    id: `resp_${number}`, object: 'response', created_at: 1, model: 'gpt', error: null, incomplete_details: null, instructions: null, metadata: {},
    parallel_tool_calls: true, temperature: 1, tool_choice: 'auto', tools: [], top_p: 1,
  }
}

function usage(): JsonObject {
  return {
    input_tokens: USAGE.input, input_tokens_details: { cached_tokens: USAGE.cached }, output_tokens: USAGE.output,
    output_tokens_details: { reasoning_tokens: USAGE.reasoning }, total_tokens: USAGE.input + USAGE.output,
  }
}

/** With a model that reasons: it refuses sampling, and efforts that it does not have. */
export const reasoningVendor: Vendor = withModel(responsesVendor, { model: 'gpt-5' }, (body, faults) => {
  for (const field of ['temperature', 'top_p']) faults.expect((body[field] ?? 1) === 1, `Unsupported parameter: '${field}' is not supported with this model.`)
  const effort = asText(asObject(body['reasoning'])?.['effort'])
  faults.expect(effort === null || ['minimal', 'low', 'medium', 'high'].includes(effort), `reasoning.effort ${String(effort)}`)
})
