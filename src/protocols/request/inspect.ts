import { GatewayError } from '../../base/errors.ts'
import { jsonPath } from '../json/json-path.ts'
import { JsonScan, MAX_DUPLICATES, type Field, type ValidJson } from '../json/json-scan.ts'
import { MAX_JSON_DEPTH } from '../../base/json-size.ts'
import { mediaType } from '../http/media-type.ts'
import { scanMultipart, type ValidForm } from './multipart.ts'
import { OUTPUT_MEMBERS, isPlainCount, worstReading } from './output-bounds.ts'
import type { BodyKind, Endpoint } from '../endpoint/protocol.ts'
import { WatchedKeys } from '../json/watched-keys.ts'

/** The parts of a request body that the gateway reads. */
export interface InspectedBody {
  /** The body, decompressed. All ranges are offsets in these bytes. */
  readonly bytes: Buffer
  /** The compressed body as received; null = not compressed. */
  readonly wire: Buffer | null
  /** The gateway changed the body, so `bytes` are sent; absent = as received. */
  readonly isEdited?: true
  readonly model: string | null
  /** Bounds in `bytes` of the values that name the model: JSON strings, or plain text in a form. */
  readonly modelFields: readonly { readonly start: number; readonly end: number }[]
  readonly stream: boolean
  /** The number of responses that the form asks for; null = the body is not a form. */
  readonly form: FormCount | null
  readonly json: ValidJson | null
  /** Bounds of the form's first delimiter; null = the body is not a form. */
  readonly delimiter: ValidForm['delimiter'] | null
}

/** Members of Gemini's `batchEmbedContents` and `countTokens` that contain whole requests for the model that the path names. */
export const INNER_REQUESTS = ['requests', 'generateContentRequest', 'generate_content_request'] as const

/** Members in which vendors keep a request's end user and the client's own notes. */
const ATTRIBUTION_MEMBERS = ['user', 'safety_identifier', 'metadata', 'labels']

const WATCHED = watched([])
const WATCHED_WITH_ATTRIBUTION = watched(ATTRIBUTION_MEMBERS)

function watched(more: readonly string[]): WatchedKeys {
  return new WatchedKeys(
    ['model', 'agent', 'stream', 'stream_options', 'background', 'anthropic_beta', ...INNER_REQUESTS, ...more],
    // Upstreams written in Go accept keys in any case, and use the last of several (encoding/json).
    ['model'],
    ['prompt', ...OUTPUT_MEMBERS],
  )
}

/** Maximum length of a model's name. No provider has longer names. */
const MODEL_LENGTH = 256

/** Form fields that contain the number of responses. */
const COUNTS = ['n', 'N', 'num_images', 'numImages', 'number_of_images', 'numberOfImages']

/** The number of responses that a form asks for. */
export interface FormCount {
  readonly count: number
  /** The first field whose value is not a whole number of at least 0; null = none. */
  readonly fault: string | null
}

const CONTENT_TYPE_LENGTH = 1024

export type BodyFormat = 'json' | 'form' | 'opaque'

const CONTENT_TYPES = {
  json: 'application/json', form: 'multipart/form-data', json_or_form: 'application/json or multipart/form-data',
} as const

/** Charsets that encode ASCII text like UTF-8. JSON bodies must be UTF-8 (RFC 8259 section 8.1). */
const CHARSETS = new Set(['', 'utf-8', 'utf8', 'us-ascii', 'ascii', 'iso-8859-1', 'latin1', 'windows-1252'])

/** @param kind the body that the endpoint accepts @throws GatewayError wrong_content_type */
export function bodyFormat(kind: BodyKind, contentType: string | null): BodyFormat {
  if (kind === 'bytes') return 'opaque'
  if (kind === 'json' && contentType === 'application/json') return 'json'
  const type = mediaType(contentType ?? '')
  const isJson = type === 'application/json' || type.endsWith('+json')
  const isForm = type === 'multipart/form-data'
  if ((isJson || isForm) && contentType?.includes(';')) checkCharset(contentType, isJson ? 'JSON' : 'a form')
  if (isForm && kind !== 'json') return 'form'
  if (isJson && kind !== 'form') return 'json'
  if (kind === 'any' || kind === 'none') return 'opaque'
  // Without a content type, the body is read as JSON.
  if (type === '' && kind !== 'form') return 'json'
  const is = type === '' ? 'none was sent' : `got '${type}'`
  throw new GatewayError('wrong_content_type', `content-type must be ${CONTENT_TYPES[kind]}; ${is}`)
}

/**
 * Refuses charsets in which an upstream could read members that the gateway does not see, such as UTF-7: some upstreams decode the body by
 * the declared charset.
 */
function checkCharset(contentType: string, what: string): void {
  // The pattern below scans again from each `charset`, so limit the length. A boundary has at most 70 characters, so no valid value is
  // longer.
  if (contentType.length > CONTENT_TYPE_LENGTH) {
    throw new GatewayError('wrong_content_type', `content-type is longer than ${CONTENT_TYPE_LENGTH} characters`)
  }
  for (const [, rest = '', value = ''] of contentType.matchAll(/charset([^=;]*)=\s*["']?([^"';,\s]*)/gi)) {
    if (rest.trim() !== '' || !CHARSETS.has(value.toLowerCase())) {
      throw new GatewayError('wrong_content_type', `${what} must be in UTF-8; got '${contentType}'`)
    }
  }
}

/** Reads a JSON body: push each piece as it arrives. @param attribution records the members with user and tags too */
export function jsonInspection(attribution = false): JsonScan {
  return new JsonScan(attribution ? WATCHED_WITH_ATTRIBUTION : WATCHED, MAX_JSON_DEPTH)
}

/** An error in the encoding of a body that is not JSON, because an editor does not show such errors; null = none. */
function encodingFault(bytes: Buffer): string | null {
  const [first, second] = bytes
  if (first === 0xef && second === 0xbb) return 'the body begins with a byte order mark; send it without one'
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff) || second === 0
  return isUtf16 ? 'the body is in UTF-16; send it in UTF-8' : null
}

/** @param scan must have read all of `bytes` @throws GatewayError invalid_json, bad model */
export function inspectJson(scan: JsonScan, bytes: Buffer, wire: Buffer | null, { body, modelAliases }: Endpoint): InspectedBody {
  const json = scan.end()
  if (!json.ok && json.isTooDeep) {
    const param = jsonPath(bytes, json.offset)
    throw new GatewayError('invalid_json', `${param}: it is nested more than ${MAX_JSON_DEPTH} levels deep`, { param })
  }
  if (!json.ok) throw new GatewayError('invalid_json', encodingFault(bytes) ?? `the body is not valid JSON: ${json.message}`)
  if (body !== 'any' && json.root !== 'object') {
    throw new GatewayError('invalid_json', `the body must be a JSON object, not ${withArticle(json.root)}`)
  }
  for (const [member, fields] of json.fields) {
    if (fields.length <= MAX_DUPLICATES) continue
    throw new GatewayError('invalid_json', `the body gives '${member}' more than ${MAX_DUPLICATES} times`)
  }
  const modelFields = modelNameFields(json, modelAliases)
  const stream = json.fields.get('stream')?.at(-1)?.type === 'true'
  return { bytes, wire, model: jsonModel(bytes, modelFields), modelFields, stream, form: null, json, delimiter: null }
}

/** @throws GatewayError invalid_form, bad model */
export function inspectForm(bytes: Buffer, contentType: string, wire: Buffer | null): InspectedBody {
  const form = scanMultipart(bytes, contentType, ['model', 'stream', ...COUNTS])
  if (!form.ok) throw new GatewayError('invalid_form', `the form cannot be read: ${form.message}`)
  const modelFields = form.fields.get('model') ?? []
  const model = singleModel(modelFields.map(field => field.value))
  const stream = form.fields.get('stream')?.at(-1)?.value === 'true'
  return { bytes, wire, model, modelFields, stream, form: formCount(form), json: null, delimiter: form.delimiter }
}

/** The result for a body that the gateway does not read. */
export function opaqueBody(bytes: Buffer): InspectedBody {
  return { bytes, wire: null, model: null, modelFields: [], stream: false, form: null, json: null, delimiter: null }
}

function formCount({ fields }: ValidForm): FormCount {
  const given = COUNTS.flatMap(name => (fields.get(name) ?? []).map(({ value }) => ({ name, value })))
  return {
    count: Math.max(1, ...given.map(({ value }) => worstReading(value) ?? 1)),
    fault: given.find(({ value }) => !isPlainCount(value))?.name ?? null,
  }
}

/** @param aliases members that name the model, as alternatives to `model` */
function modelNameFields({ fields }: ValidJson, aliases: readonly string[]): readonly Field[] {
  const models = fields.get('model') ?? []
  const others = aliases.flatMap(alias => fields.get(alias) ?? [])
  if (!others.some(isNamed)) return models
  return models.some(isNamed) ? [...models, ...others] : others
}

function isNamed({ type }: Field): boolean {
  return type !== 'null'
}

function jsonModel(bytes: Buffer, fields: readonly Field[]): string | null {
  const names: string[] = []
  for (const field of fields) {
    if (field.type === 'null') continue
    if (field.type !== 'string') {
      throw new GatewayError('model_required', `'model' must be a string, not ${withArticle(field.type)}`, { param: 'model' })
    }
    // An escaped character takes at most six bytes.
    if (field.end - field.start > MODEL_LENGTH * 6) throw tooLong()
    names.push(JSON.parse(bytes.toString('utf8', field.start, field.end)) as string)
  }
  if (names.length > 0 && names.length < fields.length) throw ambiguousModel()
  return singleModel(names)
}

/**
 * The model that all names agree on; null = no name, or an empty name. Different names are refused, because parsers would use different
 * ones.
 * @throws GatewayError model_ambiguous; model_required or model_not_found if the name is invalid
 */
export function singleModel(names: readonly string[]): string | null {
  const name = names[0]
  if (names.some(other => other !== name)) throw ambiguousModel()
  return name === undefined || name === '' ? null : modelName(name)
}

function ambiguousModel(): GatewayError {
  return new GatewayError('model_ambiguous', "'model' is given more than once, with different values", { param: 'model' })
}

/**
 * Checks a model's name. The name must contain a letter or a digit: servers treat blanks, dots and slashes differently, especially in a
 * path.
 * @throws GatewayError model_required if the name is invalid; model_not_found if the name is longer than any model's name
 */
export function modelName(name: string): string {
  if (name.length > MODEL_LENGTH) throw tooLong()
  if (!LETTER_OR_DIGIT.test(name)) throw noModelNamed()
  return name
}

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u

export function noModelNamed(): GatewayError {
  return new GatewayError('model_required', "the request must name a 'model'", { param: 'model' })
}

function tooLong(): GatewayError {
  return new GatewayError('model_not_found', `'model' is longer than ${MODEL_LENGTH} characters`, { param: 'model' })
}

function withArticle(type: string): string {
  if (type === 'true' || type === 'false' || type === 'null') return type
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
}
