import { GatewayError } from '../../base/errors.ts'
import { jsonPath } from '../json/json-path.ts'
import { JsonScan, MAX_DUPLICATES } from '../json/json-scan.ts'
import type { Field, ValidJson } from '../json/json-scan.ts'
import { MAX_JSON_DEPTH } from '../../base/json-size.ts'
import { mediaType } from '../http/media-type.ts'
import { scanMultipart } from './multipart.ts'
import type { ValidForm } from './multipart.ts'
import { OUTPUT_MEMBERS, isPlainCount, worstReading } from './output-bounds.ts'
import type { BodyKind, Endpoint } from '../endpoint/protocol.ts'
import { WatchedKeys } from '../json/watched-keys.ts'

/** What the gateway needs to know of a request body. */
export interface InspectedBody {
  /** Decompressed: what the fields below point into. */
  readonly bytes: Buffer
  /** The body as it came over the wire, where that was compressed; otherwise null. */
  readonly wire: Buffer | null
  readonly model: string | null
  /** Where the model's values stand in `bytes`, as JSON or as plain text. */
  readonly modelFields: readonly { readonly start: number; readonly end: number }[]
  readonly stream: boolean
  /** How many responses a form asks for; null = the body is none. */
  readonly form: FormCount | null
  readonly json: ValidJson | null
  /** Where a form's first delimiter stands; null = the body is none. */
  readonly delimiter: ValidForm['delimiter'] | null
}

/** Members with whole requests: of Gemini's `batchEmbedContents` and `countTokens`, for the model of the path. */
export const INNER_REQUESTS = ['requests', 'generateContentRequest', 'generate_content_request'] as const

const WATCHED = new WatchedKeys(
  [
    'model', 'agent',
    'stream', 'stream_options', 'background', 'anthropic_beta', ...INNER_REQUESTS,
  ],
  // Upstreams that are written in Go take keys in any case (encoding/json): there the last of them counts.
  ['model'],
  ['prompt', ...OUTPUT_MEMBERS],
)

/** A model's name is a word, not a text: what is longer is nobody's. */
const MODEL_LENGTH = 256

/** Fields of a form that say how many responses it asks for. */
const COUNTS = ['n', 'N', 'num_images', 'numImages', 'number_of_images', 'numberOfImages']

/** What a form says of the number of responses. */
export interface FormCount {
  readonly count: number
  /** The first field whose value is no whole number from 0 on; null = there is none. */
  readonly fault: string | null
}

/** The boundary of a form has 70 characters at most. */
const CONTENT_TYPE_LENGTH = 1024

/** How the body of one request is to be read, decided by its endpoint and its content type. */
export type BodyFormat = 'json' | 'form' | 'opaque'

/** Charsets in which what is ASCII is the same as in UTF-8, which bodies are due in (RFC 8259 section 8.1). */
const CHARSETS = new Set(['', 'utf-8', 'utf8', 'us-ascii', 'ascii', 'iso-8859-1', 'latin1', 'windows-1252'])

/**
 * @param kind what the endpoint reads
 * @param contentType the request's, or null
 * @throws GatewayError wrong_content_type
 */
export function bodyFormat(kind: BodyKind, contentType: string | null): BodyFormat {
  if (kind === 'bytes') return 'opaque'
  const type = mediaType(contentType ?? '')
  const isJson = type === 'application/json' || type.endsWith('+json')
  const isForm = type === 'multipart/form-data'
  if ((isJson || isForm) && contentType?.includes(';')) checkCharset(contentType, isJson ? 'JSON' : 'a form')
  switch (kind) {
    case 'json':
      // Without a content type the bytes themselves decide.
      if (isJson || type === '') return 'json'
      throw wrongType('application/json', type)
    case 'form':
      if (isForm) return 'form'
      throw wrongType('multipart/form-data', type)
    case 'json_or_form':
      if (isForm) return 'form'
      if (isJson || type === '') return 'json'
      throw wrongType('application/json or multipart/form-data', type)
    default:
      return isJson ? 'json' : isForm ? 'form' : 'opaque'
  }
}

/** Some upstreams decode by the declared charset: from UTF-7 they read members that are not visible here. */
function checkCharset(contentType: string, what: string): void {
  // A longer one is nobody's, and would be looked through from each of its charsets on.
  if (contentType.length > CONTENT_TYPE_LENGTH) {
    throw new GatewayError('wrong_content_type', `content-type is longer than ${CONTENT_TYPE_LENGTH} characters`)
  }
  for (const [, rest = '', value = ''] of contentType.matchAll(/charset([^=;]*)=\s*["']?([^"';,\s]*)/gi)) {
    if (rest.trim() !== '' || !CHARSETS.has(value.toLowerCase())) {
      throw new GatewayError('wrong_content_type', `${what} must be in UTF-8; got '${contentType}'`)
    }
  }
}

/** Starts to read a JSON body: give it each piece as it comes. */
export function jsonInspection(): JsonScan {
  return new JsonScan(WATCHED, MAX_JSON_DEPTH)
}

/** What an editor does not show of a text that is no JSON; null = nothing. */
function encodingFault(bytes: Buffer): string | null {
  const [first, second] = bytes
  if (first === 0xef && second === 0xbb) return 'the body begins with a byte order mark; send it without one'
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff) || second === 0
  return isUtf16 ? 'the body is in UTF-16; send it in UTF-8' : null
}

/**
 * @param scan has seen all of `bytes`
 * @throws GatewayError invalid_json, bad model
 */
export function inspectJson(
  scan: JsonScan, bytes: Buffer, wire: Buffer | null, { body, modelAliases }: Endpoint,
): InspectedBody {
  const json = scan.end()
  if (!json.ok && json.isTooDeep) throw tooDeep(jsonPath(bytes, json.offset))
  if (!json.ok) throw new GatewayError('invalid_json', encodingFault(bytes) ?? `the body is not valid JSON: ${json.message}`)
  if (body !== 'any' && json.root !== 'object') {
    throw new GatewayError('invalid_json', `the body must be a JSON object, not ${withArticle(json.root)}`)
  }
  for (const [member, fields] of json.fields) {
    if (fields.length <= MAX_DUPLICATES) continue
    throw new GatewayError('invalid_json', `the body gives '${member}' more than ${MAX_DUPLICATES} times`)
  }
  const modelFields = modelNameFields(json, modelAliases)
  const stream = json.fields.get('stream')?.at(-1)
  return {
    bytes,
    wire,
    model: jsonModel(bytes, modelFields),
    modelFields,
    stream: stream?.type === 'true',
    form: null,
    json,
    delimiter: null,
  }
}

function tooDeep(path: string): GatewayError {
  return new GatewayError('invalid_json', `${path}: it is nested more than ${MAX_JSON_DEPTH} levels deep`, { param: path })
}

/** @throws GatewayError invalid_form, bad model */
export function inspectForm(bytes: Buffer, contentType: string, wire: Buffer | null): InspectedBody {
  const form = scanMultipart(bytes, contentType, ['model', 'stream', ...COUNTS])
  if (!form.ok) throw new GatewayError('invalid_form', `the form cannot be read: ${form.message}`)
  const modelFields = form.fields.get('model') ?? []
  return {
    bytes,
    wire,
    model: singleModel(modelFields.map(field => field.value)),
    modelFields,
    stream: form.fields.get('stream')?.at(-1)?.value === 'true',
    form: formCount(form),
    json: null,
    delimiter: form.delimiter,
  }
}

/** A body that the gateway does not look into. */
export function opaqueBody(bytes: Buffer): InspectedBody {
  return {
    bytes, wire: null, model: null, modelFields: [], stream: false, form: null, json: null, delimiter: null,
  }
}

function formCount({ fields }: ValidForm): FormCount {
  const given = COUNTS.flatMap(name => (fields.get(name) ?? []).map(({ value }) => ({ name, value })))
  return {
    count: Math.max(1, ...given.map(({ value }) => worstReading(value) ?? 1)),
    fault: given.find(({ value }) => !isPlainCount(value))?.name ?? null,
  }
}

/** @param aliases members that may name the model instead of `model` */
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
      throw new GatewayError('model_required', `'model' must be a string, not ${withArticle(field.type)}`, {
        param: 'model',
      })
    }
    // Six bytes are the most that one character takes when it is escaped.
    if (field.end - field.start > MODEL_LENGTH * 6) throw tooLong()
    names.push(JSON.parse(bytes.toString('utf8', field.start, field.end)) as string)
  }
  if (names.length > 0 && names.length < fields.length) throw ambiguousModel()
  return singleModel(names)
}

/**
 * The model that is named by all of them; null = by none, or it is empty. Where a name is given twice, two parsers can read two
 * different ones: then it is unknown which one counts.
 *
 * @throws GatewayError model_ambiguous; model_required, model_not_found where it is no name
 */
export function singleModel(names: readonly string[]): string | null {
  const name = names[0]
  if (names.some(other => other !== name)) {
    throw ambiguousModel()
  }
  return name === undefined || name === '' ? null : modelName(name)
}

function ambiguousModel(): GatewayError {
  return new GatewayError('model_ambiguous', "'model' is given more than once, with different values", {
    param: 'model',
  })
}

/**
 * The name of a model, wherever it was found. One without a letter or a digit is none: servers read blanks, dots and
 * slashes as they like, in a path above all.
 *
 * @throws GatewayError model_required where it is none; model_not_found where it is longer than any that there is
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
  return new GatewayError('model_not_found', `'model' is longer than ${MODEL_LENGTH} characters`, {
    param: 'model',
  })
}

function wrongType(due: string, got: string): GatewayError {
  const is = got === '' ? 'none was sent' : `got '${got}'`
  return new GatewayError('wrong_content_type', `content-type must be ${due}; ${is}`)
}

function withArticle(type: string): string {
  if (type === 'true' || type === 'false' || type === 'null') return type
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
}
