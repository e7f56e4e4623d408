import { asList, asObject, asText, type JsonObject } from '../neutral/json.ts'

/**
 * Keywords that Gemini accepts in `parametersJsonSchema` and `responseJsonSchema`
 * (https://ai.google.dev/api/generate-content#generationconfig).
 */
const SUPPORTED = new Set([
  '$id', '$defs', '$ref', '$anchor', 'type', 'format', 'title', 'description', 'enum', 'items', 'prefixItems', 'minItems',
  'maxItems', 'minimum', 'maximum', 'anyOf', 'oneOf', 'properties', 'additionalProperties', 'required', 'propertyOrdering',
])
/** Keywords that do not restrict values, so they are removed. */
const IGNORED = new Set(['$schema', '$comment', 'default', 'examples', 'example', 'readOnly', 'writeOnly', 'deprecated', 'strict'])
/** Keywords that contain schemas by name. The client chooses the names, so a name may look like a keyword. */
const NAMED = new Set(['properties', '$defs'])
const LISTS = new Set(['anyOf', 'oneOf', 'prefixItems'])
const INNER = new Set(['items', 'additionalProperties'])

/** Converts a JSON Schema for Gemini. Keywords that Gemini refuses move into the description, where the model reads them. */
export function writeSchema(schema: JsonObject): JsonObject {
  const kept: Record<string, unknown> = {}
  const described: string[] = []
  for (const [given, value] of Object.entries(schema)) {
    const keyword = given === 'definitions' ? '$defs' : given
    if (NAMED.has(keyword)) kept[keyword] = mapValues(value, writeSchema)
    else if (LISTS.has(keyword)) kept[keyword] = asList(value).map(inner => mapSchema(inner, writeSchema))
    else if (INNER.has(keyword)) kept[keyword] = mapSchema(value, writeSchema)
    else if (keyword === 'const') kept['enum'] = [value]
    else if (keyword === 'allOf' && asList(value).length === 1) Object.assign(kept, writeSchema(asObject(asList(value)[0]) ?? {}))
    else if (keyword === '$ref') kept['$ref'] = asText(value)?.replace('#/definitions/', '#/$defs/') ?? value
    else if (SUPPORTED.has(keyword)) kept[keyword] = value
    else if (!IGNORED.has(keyword)) described.push(`${keyword}: ${JSON.stringify(value)}`)
  }
  if (described.length > 0) {
    const text = `{${described.join(', ')}}`
    kept['description'] = typeof schema['description'] === 'string' ? `${schema['description']}\n\n${text}` : text
  }
  return kept
}

/** Keywords for counts. Gemini's schemas write counts as text. */
const COUNTS = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])

/** Types by number; the first has the number 1 (google/ai/generativelanguage/v1beta/content.proto). */
const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'] as const

function typeOf(value: unknown): unknown {
  return typeof value === 'number' ? TYPES[value - 1] : asText(value)?.toLowerCase() ?? value
}

/** Converts a schema in Gemini's own format to JSON Schema. */
export function readSchema(schema: JsonObject): JsonObject {
  const read = new Map<string, unknown>()
  for (const [keyword, value] of Object.entries(schema)) {
    if (NAMED.has(keyword)) read.set(keyword, mapValues(value, readSchema))
    else if (LISTS.has(keyword)) read.set(keyword, asList(value).map(inner => mapSchema(inner, readSchema)))
    else if (INNER.has(keyword)) read.set(keyword, mapSchema(value, readSchema))
    else if (COUNTS.has(keyword)) read.set(keyword, Number(value))
    else if (keyword === 'type') read.set('type', typeOf(value))
    else if (keyword === 'example') read.set('examples', [value])
    else if (keyword !== 'nullable' && keyword !== 'propertyOrdering') read.set(keyword, value)
  }
  if (schema['nullable'] === true) {
    const type = read.get('type')
    const values = read.get('enum')
    if (typeof type === 'string') read.set('type', [type, 'null'])
    if (Array.isArray(values)) read.set('enum', [...values as unknown[], null])
  }
  return Object.fromEntries(read)
}

function mapSchema(value: unknown, map: (schema: JsonObject) => JsonObject): unknown {
  const schema = asObject(value)
  return schema === null ? value : map(schema)
}

function mapValues(value: unknown, map: (schema: JsonObject) => JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(asObject(value) ?? {}).map(([name, inner]) => [name, mapSchema(inner, map)]))
}
