import fc from 'fast-check'
import t from 'tap'
import type { BodyEdits, EditRules } from '../../../src/config/edit-types.ts'
import { bodySteps } from '../../../src/policy/edits/edit-body.ts'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import { PROTOCOLS } from '../../../src/protocols/index.ts'
import { spliceBytes } from '../../../src/protocols/json/splice.ts'
import { jsonInspection } from '../../../src/protocols/request/inspect.ts'
import { readOutputBounds } from '../../../src/protocols/request/output-bounds.ts'

const PATHS = {
  chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages', generate: '/v1beta/models/m:generateContent', converse: '/model/m/converse',
}
type Name = keyof typeof PATHS

interface Given {
  readonly set?: Record<string, unknown>
  readonly default?: Record<string, unknown>
  readonly cap?: Record<string, number>
  readonly remove?: string[]
  readonly system?: EditRules['system']
  readonly cache?: boolean
}

function rule({ system = null, cache = false, ...given }: Given): EditRules {
  const body: BodyEdits = {
    set: new Map(Object.entries(given.set ?? {})), default: new Map(Object.entries(given.default ?? {})), cap: new Map(Object.entries(given.cap ?? {})), remove: given.remove ?? [],
  }
  return { requestHeaders: null, responseHeaders: null, body, system, cache }
}

function edit(name: Name, text: string, given: Given, usesOtherBound = false): string {
  const { endpoint } = classifyPath(PATHS[name])
  const edits = PROTOCOLS.find(protocol => protocol.name === name)?.edits ?? null
  return bodySteps([rule(given)], { endpoint, edits, usesOtherBound })
    .reduce<Buffer>((body, step) => spliceBytes(body, step(body)), Buffer.from(text)).toString()
}

t.test('names of the configuration mean the members of each protocol', t => {
  const given = { set: { temperature: 0, max_output_tokens: 9, stop: 'x' } }
  t.strictSame(JSON.parse(edit('chat', '{"a":1}', given)), { temperature: 0, stop: 'x', a: 1, max_tokens: 9 })
  t.strictSame(JSON.parse(edit('chat', '{}', given, true)), { temperature: 0, stop: 'x', max_completion_tokens: 9 })
  t.strictSame(JSON.parse(edit('responses', '{}', given)), { temperature: 0, max_output_tokens: 9 }, 'responses has no stop')
  t.strictSame(JSON.parse(edit('messages', '{"max_tokens":1}', given)), { temperature: 0, stop_sequences: ['x'], max_tokens: 9 })
  t.strictSame(JSON.parse(edit('generate', '{"generation_config":{"top_k":1}}', given)),
    { generation_config: { top_k: 1, temperature: 0, stopSequences: ['x'], maxOutputTokens: 9 } })
  t.strictSame(JSON.parse(edit('converse', '{}', given)), { inferenceConfig: { temperature: 0, stopSequences: ['x'], maxTokens: 9 } })
  t.end()
})

t.test('a member is set, added, lowered or removed in every spelling and repetition', t => {
  t.equal(edit('chat', '{"Temperature":2, "temp\\u0065rature":1}', { set: { temperature: 0 } }), '{"Temperature":0, "temp\\u0065rature":0}')
  t.equal(edit('chat', '{"temperature":2}', { default: { temperature: 0 } }), '{"temperature":2}')
  t.equal(edit('chat', '{"temperature":null}', { default: { temperature: 0 } }), '{"temperature":0}')
  t.equal(edit('chat', '{"temperature":0.2}', { cap: { temperature: 1 } }), '{"temperature":0.2}')
  t.equal(edit('chat', '{"temperature":"1.9"}', { cap: { temperature: 1 } }), '{"temperature":1}')
  t.equal(edit('chat', '{"a":1,"metadata":{"b":2},"c":3}', { remove: ['metadata'] }), '{"a":1,"c":3}')
  t.equal(edit('chat', '{"metadata":1}', { remove: ['metadata', 'other'] }), '{}')
  t.equal(edit('chat', '{"thinking":{"type":"on","keep":1}}', { set: { 'thinking.type': 'off' } }), '{"thinking":{"type":"off","keep":1}}')
  t.equal(edit('chat', '{"thinking":null}', { set: { 'thinking.type': 'off' } }), '{"thinking":{"type":"off"}}')
  t.end()
})

t.test('a request that no rule changes stays as it is, byte for byte', t => {
  const text = ' { "temperature" : 0.20, "max_tokens": 5 , "messages":[ ] } '
  t.equal(edit('chat', text, { cap: { temperature: 1, max_output_tokens: 8 }, default: { temperature: 0 }, remove: ['metadata'] }), text)
  t.end()
})

t.test('a cap of the output holds in every spelling', t => {
  const cap = { cap: { max_output_tokens: 8 } }
  for (const [name, text] of [
    ['chat', '{"max_tokens":9}'], ['chat', '{"MAX_TOKENS":9,"max_tokens":1}'], ['chat', '{"m\\u0061x_tokens":"9"}'], ['chat', '{}'], ['chat', '{"max_tokens":null}'],
    ['chat', '{"max_tokens":0}'], ['chat', '{"max_tokens":-1}'], ['chat', '{"max_completion_tokens":9,"max_tokens":3}'], ['chat', '{"extra_body":{"max_tokens":99}}'],
    ['messages', '{"max_tokens":1e9}'], ['generate', '{"generationConfig":null}'],
    ['responses', '{"max_output_tokens":9.5}'], ['converse', '{"inferenceConfig":{"maxTokens":[]}}'],
  ] as const) {
    const edited = edit(name, text, cap)
    t.ok(worst(name, edited) <= 8, `${text} -> ${edited}`)
  }
  t.equal(edit('generate', '{"generationConfig":{"maxOutputTokens":9},"generation_config":{}}', cap),
    '{"generationConfig":{"maxOutputTokens":8},"generation_config":{"maxOutputTokens":8}}', 'whichever of both a server reads')
  t.end()
})

/** The bound of the output that servers of the protocol obey. */
function worst(name: Name, text: string): number {
  const body = Buffer.from(text)
  const scan = jsonInspection(false)
  scan.push(body)
  const scanned = scan.end()
  if (!scanned.ok) return Infinity
  const { bound } = readOutputBounds(classifyPath(PATHS[name]).endpoint, body, scanned.fields)
  return bound ?? Infinity
}

const NAMES = ['temperature', 'max_output_tokens', 'metadata', 'stop', 'thinking.type', 'reasoning_effort', 'x', 'a.b.c']
const bodies = fc.dictionary(
  fc.constantFrom('temperature', 'TEMPERATURE', 'max_tokens', 'maxTokens', 'generationConfig', 'reasoning', 'thinking', 'metadata', 'a', 'x', 'y', 'output_config'),
  fc.oneof(fc.jsonValue(), fc.dictionary(fc.constantFrom('temperature', 'effort', 'type', 'b', 'maxOutputTokens', 'max_tokens'), fc.jsonValue())),
)
const values = fc.dictionary(fc.constantFrom(...NAMES), fc.oneof(fc.integer({ min: 1, max: 99 }), fc.constant('text')), { noNullPrototype: true })

t.test('any edits of any body give valid JSON, change only their members, and change nothing the second time', t => {
  fc.assert(fc.property(fc.constantFrom(...Object.keys(PATHS) as Name[]), bodies, values, values, fc.uniqueArray(fc.constantFrom(...NAMES)), (name, body, set, absent, remove) => {
    const given = { set: remove.length > 0 ? {} : set, default: remove.length > 0 ? {} : absent, remove }
    const once = edit(name, JSON.stringify(body), given)
    const parsed = JSON.parse(once) as Record<string, unknown>
    for (const untouched of ['y']) if (untouched in body) t.strictSame(parsed[untouched], JSON.parse(JSON.stringify(body[untouched])))
    return edit(name, once, given) === once
  }), { numRuns: 2000 })
  fc.assert(fc.property(fc.constantFrom(...Object.keys(PATHS) as Name[]), bodies, fc.integer({ min: 1, max: 50 }), (name, body, limit) =>
    worst(name, edit(name, JSON.stringify(body), { cap: { max_output_tokens: limit } })) <= limit), { numRuns: 2000 })
  t.end()
})

t.test('instructions get text in front and behind, in the form of each protocol', t => {
  const given = { system: { prepend: 'A"', append: 'B' } }
  const added = (name: Name, body: object) => JSON.parse(edit(name, JSON.stringify(body), given)) as unknown
  const user = { role: 'user', content: 'hi' }
  t.strictSame(added('chat', { messages: [user] }), { messages: [{ role: 'system', content: 'A"\n\nB' }, user] })
  t.strictSame(added('chat', { messages: [{ role: 'system', content: 'S' }, { role: 'developer', content: [{ type: 'text', text: 'D' }] }, user] }),
    { messages: [{ role: 'system', content: 'A"\n\nS' }, { role: 'developer', content: [{ type: 'text', text: 'D' }, { type: 'text', text: 'B' }] }, user] })
  t.strictSame(added('responses', { instructions: 'S' }), { instructions: 'A"\n\nS\n\nB' })
  t.strictSame(added('responses', { instructions: null }), { instructions: 'A"\n\nB' })
  t.strictSame(added('messages', { system: 'S' }), { system: 'A"\n\nS\n\nB' })
  t.strictSame(added('messages', {}), { system: 'A"\n\nB' })
  t.strictSame(added('messages', { system: [] }), { system: [{ type: 'text', text: 'A"' }, { type: 'text', text: 'B' }] })
  t.strictSame(added('generate', { system_instruction: { parts: [{ text: 'S' }] } }), { system_instruction: { parts: [{ text: 'A"' }, { text: 'S' }, { text: 'B' }] } })
  t.strictSame(added('generate', {}), { systemInstruction: { parts: [{ text: 'A"\n\nB' }] } })
  t.strictSame(added('converse', { system: [{ text: 'S' }] }), { system: [{ text: 'A"' }, { text: 'S' }, { text: 'B' }] })
  t.end()
})

t.test('marks for the cache stand at the last tool, the system prompt and the last two user messages', t => {
  const mark = { cache_control: { type: 'ephemeral' } }
  const marked = (body: object) => JSON.parse(edit('messages', JSON.stringify(body), { cache: true })) as unknown
  t.strictSame(marked({
    tools: [{ name: 'a' }, { name: 'b' }], system: 'S',
    messages: [{ role: 'user', content: '1' }, { role: 'assistant', content: '2' }, { role: 'user', content: [{ type: 'text', text: '3' }] }, { role: 'user', content: '4' }],
  }), {
    tools: [{ name: 'a' }, { ...mark, name: 'b' }], system: [{ type: 'text', text: 'S', ...mark }],
    messages: [{ role: 'user', content: '1' }, { role: 'assistant', content: '2' }, { role: 'user', content: [{ ...mark, type: 'text', text: '3' }] },
      { role: 'user', content: [{ type: 'text', text: '4', ...mark }] }],
  })
  const own = { system: [{ type: 'text', text: 'S', ...mark }], messages: [{ role: 'user', content: 'x' }] }
  t.strictSame(marked(own), own, 'the marks of the client stay')
  t.strictSame(marked({ system: '', messages: [{ role: 'user', content: [{ type: 'tool_use' }] }] }), { system: '', messages: [{ role: 'user', content: [{ type: 'tool_use' }] }] })
  t.end()
})
