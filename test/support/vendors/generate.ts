import { asList, asObject, asText } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { USAGE, fullName, objects, pieces, words } from './vendor.ts'
import type { Conversation, Faults, Turn, Vendor } from './vendor.ts'

const FIELDS = words('contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent labels serviceTier')
const CONFIG = words('stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount maxOutputTokens temperature topP topK'
  + ' seed presencePenalty frequencyPenalty responseLogprobs logprobs thinkingConfig mediaResolution')
/** Members of a part in addition to its content. */
const PART_FIELDS = words('thought thoughtSignature videoMetadata')
const PART_CONTENTS = words('text inlineData fileData functionCall functionResponse executableCode codeExecutionResult')
/** Of a function. It takes names in snake case too, and Google's SDK for Python writes these so. */
const DECLARATION = words('name description parameters parametersJsonSchema response responseJsonSchema behavior parameters_json_schema response_json_schema')
/** Of `parameters`, Gemini's own form of a schema (https://ai.google.dev/api/caching#Schema). */
const SCHEMA = words('type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength'
  + ' pattern example anyOf propertyOrdering default items minimum maximum')
/** Of `parametersJsonSchema`, with `$schema`, which Gemini CLI sends. */
const JSON_SCHEMA = words('$schema $id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf'
  + ' properties additionalProperties required propertyOrdering')
/** The signature to send for a call of another model. */
const FOREIGN_SIGNATURE = 'skip_thought_signature_validator'

/** Gemini's API, with a model of version 3: it checks thought signatures. */
export const generateVendor: Vendor = {
  protocol: 'generate',
  isStream: ({ path }) => path.includes(':streamGenerateContent'),
  read: ({ path, headers, body }, faults) => {
    faults.expect(/^\/v1(?:beta)?\/models\/[^/:]+:(?:streamGenerateContent\?alt=sse|generateContent)$/.test(path), `no such path: ${path}`)
    faults.expect(headers['authorization'] === undefined, 'a second credential')
    faults.known(body, FIELDS, 'body')
    faults.known(asObject(body['generationConfig']), CONFIG, 'generationConfig')
    const system = asObject(body['systemInstruction'])
    faults.expect(body['systemInstruction'] === undefined || objects(system?.['parts']).every(({ text }) => typeof text === 'string'), 'systemInstruction')
    return { tools: readTools(body, faults), ...readContents(objects(body['contents']), faults) }
  },
  body: (turn, number) => responseOf(partsOf(turn, number), number, true),
  stream: (turn, number) => {
    const parts = partsOf(turn, number).flatMap(part => typeof part['text'] === 'string' ? pieces(part['text']).map(text => ({ ...part, text })) : [part])
    return parts.map((part, at) => `data: ${JSON.stringify(responseOf([part], number, at === parts.length - 1))}\n\n`).join('')
  },
  count: ({ path }) => path.endsWith(':countTokens') ? { totalTokens: USAGE.input } : null,
  error: message => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }),
}

function readTools(body: JsonObject, faults: Faults): string[] {
  const names: string[] = []
  for (const tool of objects(body['tools'])) {
    for (const declaration of objects(tool['functionDeclarations'])) {
      const name = asText(declaration['name']) ?? ''
      const schema = declaration['parametersJsonSchema'] ?? declaration['parameters_json_schema']
      faults.known(declaration, DECLARATION, name)
      faults.expect(/^[a-zA-Z_][\w.:-]{0,127}$/.test(name), `tool name ${name}`)
      faults.expect(!names.includes(name), `two tools ${name}`)
      names.push(name)
      checkSchema(asObject(declaration['parameters']), SCHEMA, name, faults)
      checkSchema(asObject(schema), JSON_SCHEMA, name, faults)
      faults.expect(declaration['parameters'] === undefined || schema === undefined, `${name}: two schemas`)
    }
  }
  return names
}

function checkSchema(schema: JsonObject | null, keywords: ReadonlySet<string>, where: string, faults: Faults): void {
  if (schema === null) return
  faults.known(schema, keywords, where)
  const inner = [
    ...Object.values(asObject(schema['properties']) ?? {}), ...Object.values(asObject(schema['$defs']) ?? {}), schema['items'],
    schema['additionalProperties'], ...['anyOf', 'oneOf', 'prefixItems'].flatMap(keyword => asList(schema[keyword])),
  ]
  for (const one of inner) checkSchema(asObject(one), keywords, where, faults)
}

interface FunctionCall {
  readonly id?: string
  readonly name: string
}

function readContents(contents: readonly JsonObject[], faults: Faults): Omit<Conversation, 'tools'> {
  let rounds = 0
  let calls: FunctionCall[] = []
  let results: string[] = []
  faults.expect(contents.length > 0, 'no contents')
  for (const [at, content] of contents.entries()) {
    const where = `contents[${at}]`
    faults.known(content, words('role parts'), where)
    faults.expect((content['role'] ?? 'user') === (at % 2 === 0 ? 'user' : 'model'), `${where}: role ${String(content['role'])}`)
    const parts = objects(content['parts'])
    faults.expect(parts.length > 0, `${where}: no parts`)
    for (const part of parts) checkPart(part, where, faults)
    const given = parts.map(part => asObject(part['functionResponse'])).filter(result => result !== null)
    faults.expect(given.length === calls.length, `${where}: ${given.length} results of ${calls.length} calls`)
    for (const [n, result] of given.entries()) {
      faults.known(result, words('id name response parts willContinue scheduling'), `${where}: functionResponse`)
      // Google's SDK for Python sends results of its own loop without ids.
      faults.expect(result['name'] === calls[n]?.name && (result['id'] ?? calls[n]?.id) === calls[n]?.id, `${where}: result of ${String(result['name'])} ${String(result['id'])}, not of ${calls[n]?.name} ${calls[n]?.id}`)
      faults.expect(asObject(result['response']) !== null, `${where}: response is no object`)
    }
    if (given.length > 0) results = given.map(result => Object.values(asObject(result['response']) ?? {}).map(value => typeof value === 'string' ? value : JSON.stringify(value)).join('\n'))
    const signed = parts.filter(part => part['functionCall'] !== undefined)
    calls = signed.map(part => part['functionCall'] as FunctionCall)
    if (calls.length === 0) continue
    rounds++
    const [first] = signed
    faults.expect([signatureOf(calls[0]?.id ?? ''), FOREIGN_SIGNATURE].includes(String(first?.['thoughtSignature'])), `${where}: signature ${String(first?.['thoughtSignature'])}`)
  }
  faults.expect(contents.length % 2 === 1, 'the last content is of the model')
  return { rounds, results }
}

function checkPart(part: JsonObject, where: string, faults: Faults): void {
  const [content, ...more] = Object.keys(part).filter(key => !PART_FIELDS.has(key))
  faults.expect(content !== undefined && PART_CONTENTS.has(content) && more.length === 0, `${where}: part with ${Object.keys(part).join()}`)
  if (part['functionCall'] === undefined) return
  const call = asObject(part['functionCall'])
  faults.known(call, words('id name args'), `${where}: functionCall`)
  faults.expect(call?.['args'] === undefined || asObject(call['args']) !== null, `${where}: args`)
}

function signatureOf(id: string): string {
  return Buffer.from(`signed ${id}`).toString('base64')
}

/** Of parallel calls only the first has a signature. */
function partsOf({ thinking, text, calls = [] }: Turn, number: number): JsonObject[] {
  return [
    ...thinking === undefined ? [] : [{ text: thinking, thought: true }],
    ...text === undefined ? [] : [{ text }],
    ...calls.map((call, at) => {
      const id = `call-${number}-${at}`
      return { functionCall: { id, name: fullName(call), args: call.input }, ...at === 0 && { thoughtSignature: signatureOf(id) } }
    }),
  ]
}

function responseOf(parts: readonly JsonObject[], number: number, isLast: boolean): JsonObject {
  return {
    candidates: [{ content: { role: 'model', parts }, index: 0, ...isLast && { finishReason: 'STOP' } }],
    modelVersion: 'gemini-3-pro', responseId: `response-${number}`,
    usageMetadata: {
      promptTokenCount: USAGE.input, cachedContentTokenCount: USAGE.cached, ...isLast && {
        candidatesTokenCount: USAGE.output - USAGE.reasoning, thoughtsTokenCount: USAGE.reasoning, totalTokenCount: USAGE.input + USAGE.output,
      },
    },
  }
}
