import fc from 'fast-check'
import { MODEL, depth, instructionOf, isObject, long, raw, times } from './template.ts'
import type { Template } from './template.ts'

/** One change of a template. Its numbers choose, modulo what there is to choose from, so every edit fits every template. */
export interface Edit {
  readonly op: keyof typeof OPERATIONS
  /** Where. */
  readonly at: number
  /** With what. */
  readonly by: number
}

/** A place of a template that can hold another value. */
interface Slot {
  readonly parent: Template[] | Record<string, Template>
  readonly key: string
  readonly value: Template
}

export const ODD_NUMBERS: readonly Template[] = [
  0, -1, 1, 2, 0.5, 1000000.5, 1e6, 50, -0.5, 1e21, 2 ** 31, 2 ** 53, ...[
    '1e999', '-1e999', '-0', '1E+2', '1.0', '1e6', '9007199254740993', '100000000000000000000', `${'9'.repeat(400)}`, '0e1000000000', '1e-400',
    '"1000000"', '"1_000_000"', '"50"', '" 7 "', '"0x10"', '"1e3"', '"Infinity"', '"-5"', '[9]', 'true',
  ].map(raw),
]

const DATA = 'data:image/png;base64,iVBORw0KGgo='
const ODD_STRINGS: readonly Template[] = [
  '', ' ', '\u0000', '\ud800', '\u2028', 'é😀', '__proto__', 'constructor', 'toString', 'null', '..', '/', 'a/b', '%2e%2e', MODEL, 'system', 'user', 'assistant', 'tool', 'developer',
  'text', 'function', 'tool_use', 'tool_result', 'thinking', 'image', 'input_text', 'function_call', 'additional_tools', 'tool_search_output', 'custom', 'namespace', 'web_search',
  'message_stop', 'response.completed', 'error', 'data: x\n\n', '[DONE]', '{"', '{"a":1}', '[', 'STOP', 'call_1', 'toolu_1', 'a__b', 'functions.x:0', 'x'.repeat(65), DATA, `${DATA}=`, 'data:;a;a,x', 'data:,', 'https://example.com/a.png', 'file-1', 'gs://b/o',
  'Gateway1', 'Gateway1q1ZKVrJSMlSqBQA=', `Gateway1${'q1bKBAA'.repeat(9)}`, raw('"\\u006dodel"'), raw('"\\ud83d"'), raw('"\\'), raw('"a\nb"'), raw('"\u007f"'),
]
/** Zeros that deflate to nearly nothing, as capsules of a version before had them inside. */
const LONG_STRINGS = ['x', ' ', 'é', '\\', '"', '{', '[', ';a', 'a,', '\n', 'data:;a;a', 'Gateway1', 'aaaa bbbb ', '\u0000', '<', '0', '/', '日本', 'data: {}\n\n', '😀', 'ab__', '%'] as const

const OTHER_TYPES: readonly Template[] = [null, true, false, 0, '', 'x', [], {}, [[]], [{}], [null], ['x'], { type: 'text' }, { type: 'text', text: 'x' }, [{ type: 'text', text: 'x' }], { role: 'user' }, [[], {}, null, 1, 'x']]

/** Members that change what a request asks for, or costs, by some of the names that a server may read. */
const MEMBERS: readonly (readonly [string, Template])[] = [
  ...['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens', 'maxOutput_tokens', 'maxTokens', 'max_tokens_to_sample', 'n', 'best_of', 'candidateCount', 'candidate_count', 'Max_Tokens'].flatMap(key => [7, 1e5].map((value): readonly [string, Template] => [key, value])),
  ['stream', true], ['stream', 'true'], ['stream', null], ['stream_options', { include_usage: true }], ['model', MODEL], ['model', 'plain-other'], ['models', [MODEL]],
  ['generationConfig', { maxOutputTokens: 5, candidateCount: 2, routingConfig: { manualMode: { modelName: 'x' } } }], ['generation_config', { max_output_tokens: 5 }],
  ['extra_body', { model: 'x', max_tokens: 1e6 }], ['thinking', { type: 'enabled', budget_tokens: 1e6 }], ['reasoning_effort', 'high'], ['cache_control', { type: 'ephemeral' }], ['service_tier', 'priority'],
  ['tools', [{ type: 'web_search' }, { name: 'a', input_schema: {} }]], ['id', 'x'], ['type', 'text'], ['index', 1], ['index', 1e9], ['error', { message: 'x' }], ['usage', null], ['p', 'x'], ['__proto__', { a: 1 }], ['toJSON', 'x'], ['length', 5], ['text', 'x'], ['content', 'x'],
]

type Operation = (slots: readonly Slot[], edit: Edit, corpus: readonly Template[]) => void

const OPERATIONS = {
  remove: on(() => true, ({ parent, key }) => {
    if (Array.isArray(parent)) parent.splice(Number(key), 1)
    else delete parent[key]
  }),
  duplicate: on(inList, (slot, { by }) => set(slot, times(2 + by % 3, by % 2 === 0 ? slot.value : numbered(slot.value)))),
  /** A list as long as the case may be. */
  repeat: on(inList, (slot, { by }) => set(slot, times(manyOf(by), by % 2 === 0 ? slot.value : numbered(slot.value)))),
  /** An object with as many members, all of one name or each of its own. */
  repeatMember: on(slot => !inList(slot), ({ parent, key, value }, { by }) => {
    const members = parent as Record<string, Template>
    put(members, by % 2 === 0 ? key : `${key}{n}`, times(by % 16 === 0 ? 2 : manyOf(by), value))
  }),
  nest: on(() => true, (slot, { by }) => set(slot, depth(by % 8 === 0 ? 1 : manyOf(by), [null, slot.key, 'properties', 'items'][by % 4] ?? null, slot.value))),
  retype: on(() => true, (slot, { by }) => set(slot, pick(OTHER_TYPES, by))),
  number: on(({ value }) => typeof value === 'number', (slot, { by }) => set(slot, pick(ODD_NUMBERS, by))),
  string: on(({ value }) => typeof value === 'string', (slot, { by }) => set(slot, pick(ODD_STRINGS, by))),
  lengthen: on(({ value }) => typeof value === 'string', (slot, { by }) => set(slot, long(manyOf(by), pick(LONG_STRINGS, by)))),
  /** One place gets what another one has: so ids meet that should not, and values stand where another type is due. */
  swap: on(() => true, (slot, { by }, slots) => set(slot, pick(slots, by).value)),
  sameKey: on(() => true, (slot, { by }, slots) => {
    set(slot, pick(slots.filter(({ key }) => key === slot.key), by).value)
  }),
  spell: on(slot => !inList(slot), ({ parent, key, value }, { by }) => {
    const members = parent as Record<string, Template>
    if (by % 2 === 0) delete members[key]
    put(members, spelling(key, by >> 1), value)
  }),
  add: on(({ value }) => isObject(value) && instructionOf(value) === null, ({ value }, { by }) => {
    const [key, member] = pick(MEMBERS, by)
    put(value as Record<string, Template>, key, member)
  }),
  /** A part of another message. */
  splice: on(() => true, (slot, { by }, _slots, corpus) => {
    const others = slotsOf([pick(corpus, by)])
    const like = others.filter(({ key }) => key === slot.key)
    set(slot, pick(like.length > 0 && by % 4 !== 0 ? like : others, by >> 3).value)
  }),
  append: on(({ value }) => Array.isArray(value), ({ value }, { by }, _slots, corpus) => {
    const others = slotsOf([pick(corpus, by)]).filter(inList);
    (value as Template[]).push(structuredClone(pick(others, by >> 3).value))
  }),
} as const satisfies Record<string, Operation>

/** Ten to a million. */
function manyOf(by: number): number {
  return 10 ** (1 + (by >> 4) % 6)
}

export const EDIT: fc.Arbitrary<Edit> = fc.record({
  op: fc.constantFrom(...Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[]), at: fc.nat(0xffff), by: fc.nat(0xffff),
})

const MILLION = 5 << 4
/** An edit that makes as much of a part as the case may be large. */
export const GROWTH: fc.Arbitrary<Edit> = fc.record({
  op: fc.constantFrom('repeat', 'repeat', 'repeatMember', 'nest', 'lengthen'), at: fc.nat(0xffff), by: fc.nat(15).map(by => MILLION + by),
})

/** @param corpus other messages, for parts of them. @returns a changed copy */
export function edited(template: Template, edits: readonly Edit[], corpus: readonly Template[]): Template {
  const root = [structuredClone(template)]
  for (const edit of edits) OPERATIONS[edit.op](slotsOf(root), edit, corpus)
  return root[0] ?? null
}

function on(
  fits: (slot: Slot) => boolean, change: (slot: Slot, edit: Edit, slots: readonly Slot[], corpus: readonly Template[]) => void,
): Operation {
  return (slots, edit, corpus) => {
    const fitting = slots.filter(fits)
    if (fitting.length > 0) change(pick(fitting, edit.at), edit, slots, corpus)
  }
}

function slotsOf(root: Template[]): Slot[] {
  const slots: Slot[] = []
  const walk = (parent: Template): void => {
    if (typeof parent !== 'object' || parent === null) return
    const instruction = instructionOf(parent)
    for (const [key, value] of Object.entries(parent)) {
      if (instruction !== null && key !== 'of') continue
      if (instruction === null) slots.push({ parent, key, value })
      walk(value)
    }
  }
  walk(root)
  return slots
}

function inList({ parent }: Slot): boolean {
  return Array.isArray(parent)
}

function set({ parent, key }: Slot, value: Template): void {
  put(parent as Record<string, Template>, key, value)
}

/** Sets a member to a copy, so that no part is in two places; also one of the name `__proto__`. */
function put(members: Record<string, Template>, key: string, value: Template): void {
  Object.defineProperty(members, key, { value: structuredClone(value), enumerable: true, configurable: true, writable: true })
}

/** With a number in each id and name. */
function numbered(template: Template, key = ''): Template {
  if (Array.isArray(template)) return template.map(item => numbered(item, key))
  if (isObject(template)) return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, numbered(value, name)]))
  if (typeof template === 'string' && /(?:id|name|key)$/i.test(key)) return `${template}{n}`
  return key === 'index' ? raw('{n}') : template
}

function spelling(key: string, by: number): string {
  const snake = key.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
  const camel = key.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  return pick([snake, camel, camel.replace(/([A-Z])(?!.*[A-Z])/, letter => `_${letter.toLowerCase()}`), key.toUpperCase(), ` ${key}`, `${key} `, key.replaceAll('_', '-'), `${key}\u0000`], by)
}

function pick<T>(list: readonly T[], by: number): T {
  return list[by % list.length] as T
}
