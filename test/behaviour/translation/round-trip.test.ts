import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { TranslationReport } from '../../../src/protocols/neutral/report.ts'
import { EMPTY_REQUEST, NEUTRAL_FIELDS } from '../../../src/protocols/neutral/request.ts'
import type { Message, NeutralField, NeutralRequest, Part, Tool, ToolChoice } from '../../../src/protocols/neutral/request.ts'
import { PROVIDER, clientSide, upstreamSide } from '../../support/translation.ts'
import { capsuleReader } from '../../support/capsules.ts'

/*
 * A request that is translated to another protocol and back keeps its content, in all fields that both protocols have.
 */

const NAMES = ['chat', 'responses', 'messages', 'generate'] as const

const BASE = { path: '', cache: null }
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter(value => value.trim() !== '')
const textPart = text.map((value): Part => ({ ...BASE, type: 'text', text: value, opaque: null }))
const imagePart = fc.base64String({ minLength: 4, maxLength: 40 }).map((data): Part => (
  { ...BASE, type: 'image', source: { kind: 'base64', mediaType: 'image/png', data }, detail: null }
))
const documentPart = fc.base64String({ minLength: 4, maxLength: 40 }).map((data): Part => (
  { ...BASE, type: 'document', source: { kind: 'base64', mediaType: 'application/pdf', data }, name: 'a.pdf' }
))
const say = (role: Message['role'], ...parts: readonly Part[]): Message => ({ role, parts, name: null })

/** A question, optionally with a turn of parallel calls and their results. */
const turn = fc.record({
  question: fc.array(fc.oneof(textPart, imagePart, documentPart), { minLength: 1, maxLength: 3 }),
  answer: textPart,
  args: fc.array(fc.dictionary(fc.constantFrom('at', 'é', '"'), fc.oneof(fc.string(), fc.integer())), { maxLength: 3 }),
  result: text,
})
const conversation = fc.tuple(fc.option(textPart), fc.array(turn, { minLength: 1, maxLength: 3 })).map(([system, turns]) => [
  ...system === null ? [] : [say('system', system)],
  ...turns.flatMap(({ question, answer, args, result }, n): Message[] => [
    say('user', ...question),
    say('assistant', answer, ...args.map((value, call): Part => (
      { ...BASE, type: 'tool_call', id: `call_${n}_${call}`, name: `f${call}`, arguments: JSON.stringify(value), isFreeform: false, opaque: null }
    ))),
    ...args.length === 0 ? [] : [
      say('user', ...args.map((_, call): Part => (
        { ...BASE, type: 'tool_result', callId: `call_${n}_${call}`, name: `f${call}`, isFreeform: false, isError: false, parts: [{ ...BASE, type: 'text', text: result, opaque: null }] }
      ))),
      say('assistant', answer),
    ],
  ]),
  say('user', { ...BASE, type: 'text', text: 'And?', opaque: null }),
])

const SCHEMA = { type: 'object', properties: { at: { type: 'integer' }, minimum: { type: 'string' } }, required: ['at'] }
const tools = fc.constantFrom<readonly Tool[]>([], ['f0', 'f1', 'f2'].map(name => (
  { path: '', cache: null, name, namespaced: null, isToolSearch: false, description: `Runs ${name}.`, parameters: SCHEMA, strict: null, freeform: null }
)))
const toolChoice = fc.constantFrom<ToolChoice | null>(null, { type: 'auto' }, { type: 'none' }, { type: 'required' }, { type: 'tools', names: ['f1'], isForced: true })
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value)
const share = fc.integer({ min: 0, max: 10 }).map(tenths => tenths / 10)

/** Requests with values that each protocol accepts; other values are in the tests of each protocol. */
const requests: fc.Arbitrary<NeutralRequest> = fc.record({
  stream: fc.constant(false), messages: conversation, tools, toolChoice, parallelToolCalls: fc.constantFrom(null, false),
  outputFormat: fc.constantFrom(null, { type: 'json_schema' as const, name: 'response', description: null, schema: { ...SCHEMA, additionalProperties: false }, strict: null }),
  maxOutputTokens: fc.integer({ min: 4096, max: 30_000 }), stopSequences: fc.uniqueArray(text, { maxLength: 4 }),
  temperature: optional(share), topP: fc.constant(null), topK: optional(fc.integer({ min: 1, max: 40 })),
  presencePenalty: optional(share), frequencyPenalty: optional(share), seed: optional(fc.nat(1000)),
  verbosity: fc.constantFrom(null, 'low', 'high'), user: optional(fc.constant('user-1')), metadata: optional(fc.constant({ team: 'a' })),
  cacheKey: optional(fc.constant('key')),
}).map(fields => ({ ...EMPTY_REQUEST, ...fields, ...fields.tools.length === 0 && { toolChoice: null, parallelToolCalls: null } }))

/** Fields with partial support whose values in these requests all protocols support. */
const COMMON: ReadonlySet<NeutralField> = new Set(['messages', 'tools', 'outputFormat', 'stopSequences', 'temperature'])
/** Fields that are not compared, because they are not content of the request. */
const NOT_COMPARED: ReadonlySet<NeutralField> = new Set(['model', 'stream', 'includeUsage'])

interface Written {
  readonly body: JsonObject
  readonly dropped: readonly string[]
}

function write(name: string, request: NeutralRequest): Written {
  const report = new TranslationReport(new Map(), new Set())
  const { body } = upstreamSide(name).writeRequest(request, { report, model: 'm', asksForUsage: false, accepts: {}, provider: PROVIDER })
  return { body, dropped: report.dropped }
}

function read(name: string, body: JsonObject): NeutralRequest {
  const { normalize, readRequest } = clientSide(name)
  return readRequest(normalize?.(body) ?? body, { report: new TranslationReport(new Map(), new Set()), stream: false, capsules: capsuleReader() })
}

/** Does the protocol have the field, for values as in these requests? */
function has(name: string, field: NeutralField): boolean {
  const support = upstreamSide(name).support[field]
  return support === 'mapped' || (support === 'partly' && COMMON.has(field))
}

/** @returns the content of a field, without its places in the body */
function said(request: NeutralRequest, field: NeutralField): unknown {
  if (field === 'messages') return request.messages.map(({ role, parts }) => ({ role, parts: parts.map(plain) }))
  if (field === 'tools') return request.tools.map(({ name, description, parameters }) => ({ name, description, parameters }))
  if (field === 'outputFormat') return request.outputFormat?.type === 'json_schema' ? request.outputFormat.schema : request.outputFormat
  // `auto` is the default. The messages protocol needs the field to disable parallel calls.
  if (field === 'toolChoice') return request.toolChoice ?? { type: 'auto' }
  // If no calls are allowed, the field has no meaning.
  if (field === 'parallelToolCalls' && request.toolChoice?.type === 'none') return null
  return (request as unknown as Record<string, unknown>)[field]
}

function plain(part: Part): unknown {
  const { path: _, cache: __, ...rest } = part
  if (rest.type === 'image') return rest.source
  // The generate protocol has no names of documents.
  if (rest.type === 'document') return rest.source
  if (rest.type === 'tool_call') return { ...rest, arguments: JSON.parse(rest.arguments) as unknown }
  return rest.type === 'tool_result' ? { ...rest, parts: rest.parts.map(plain) } : rest
}

for (const from of NAMES) {
  for (const to of NAMES.filter(name => name !== from)) {
    t.test(`${from} -> ${to} -> ${from}: fields that both protocols have are kept`, async t => {
      const fields = NEUTRAL_FIELDS.filter(field => !NOT_COMPARED.has(field) && has(from, field) && has(to, field))
      t.ok(fields.length >= 6, fields.join(', '))
      fc.assert(fc.property(requests, given => {
        // The request with only what the client's protocol can express.
        const before = read(from, write(from, given).body)
        const there = write(to, before)
        const back = read(from, write(from, read(to, there.body)).body)
        for (const field of fields) {
          t.strictSame(said(back, field), said(before, field), field)
          t.notOk(there.dropped.includes(field), `${field} is not reported`)
        }
      }), { seed: 29, numRuns: 40 })
    })
  }
}
