import { asList, asObject, type JsonObject } from '../neutral/json.ts'

/** Keywords that Anthropic's structured outputs refuse (https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs). */
const UNSUPPORTED = new Set([
  'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'maxItems',
  'uniqueItems', 'minProperties', 'maxProperties', 'patternProperties', 'propertyNames', 'minContains', 'maxContains',
])

/** Keywords that contain schemas by name. The client chooses the names, so a name may look like a keyword. */
const NAMED = new Set(['properties', '$defs', 'definitions'])
const LISTS = new Set(['anyOf', 'allOf', 'oneOf', 'prefixItems'])

/**
 * Closes the objects of a schema, and moves unsupported keywords into the description, where the model reads them. Anthropic's SDKs do the
 * same.
 */
export function outputSchema(schema: JsonObject): JsonObject {
  const kept = new Map<string, unknown>()
  const described: string[] = []
  for (const [keyword, value] of Object.entries(schema)) {
    if (UNSUPPORTED.has(keyword) || (keyword === 'minItems' && value !== 0 && value !== 1)) {
      described.push(`${keyword}: ${JSON.stringify(value)}`)
    } else if (NAMED.has(keyword)) {
      const named = Object.entries(asObject(value) ?? {}).map(([name, inner]) => [name, innerSchema(inner)])
      kept.set(keyword, Object.fromEntries(named))
    } else if (LISTS.has(keyword)) {
      // Structured outputs refuse `oneOf`; `anyOf` means the same if the branches exclude each other.
      kept.set(keyword === 'oneOf' ? 'anyOf' : keyword, asList(value).map(innerSchema))
    } else {
      kept.set(keyword, keyword === 'items' ? innerSchema(value) : value)
    }
  }
  if (schema['type'] === 'object' || schema['properties'] !== undefined) kept.set('additionalProperties', false)
  if (described.length > 0) {
    const text = `{${described.join(', ')}}`
    kept.set('description', typeof schema['description'] === 'string' ? `${schema['description']}\n\n${text}` : text)
  }
  return Object.fromEntries(kept)
}

/**
 * Tells whether OpenAI accepts the schema as strict: every object must be closed, and all its members required
 * (https://platform.openai.com/docs/guides/structured-outputs). Anthropic also allows optional members.
 */
export function fitsStrict(schema: JsonObject): boolean {
  // A list instead of recursion, because a schema may be nested deeply.
  const waiting: unknown[] = [schema]
  for (const value of waiting) {
    const inner = asObject(value)
    if (inner === null) continue
    const properties = asObject(inner['properties'])
    const required = new Set(asList(inner['required']))
    const isOpen = inner['additionalProperties'] !== false || Object.keys(properties ?? {}).some(name => !required.has(name))
    if ((inner['type'] === 'object' || properties !== null) && isOpen) return false
    for (const [keyword, member] of Object.entries(inner)) {
      if (NAMED.has(keyword)) for (const named of Object.values(asObject(member) ?? {})) waiting.push(named)
      else if (LISTS.has(keyword)) for (const item of asList(member)) waiting.push(item)
      else if (keyword === 'items') waiting.push(member)
    }
  }
  return true
}

function innerSchema(value: unknown): unknown {
  const schema = asObject(value)
  return schema === null ? value : outputSchema(schema)
}
