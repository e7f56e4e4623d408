import { asObject, type JsonObject } from '../neutral/json.ts'

/** Members whose content has names that the client chooses, so the names are not fields. */
const OPEN = new Set([
  'args', 'response', 'parameters', 'parametersJsonSchema', 'responseSchema', 'responseJsonSchema', 'schema', 'labels', 'partMetadata',
])

/** Renames members to camel case, because Google's APIs also accept names like `system_instruction` (protobuf's JSON format). */
export function camelCase(body: JsonObject): JsonObject {
  // Avoids a copy: most bodies are in camel case already, and a body may have very many members.
  return hasUnderscores(body) ? rewritten(body) : body
}

function hasUnderscores(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasUnderscores)
  const object = asObject(value)
  for (const name in object) {
    if (name.includes('_') || (!OPEN.has(name) && hasUnderscores(object[name]))) return true
  }
  return false
}

function rewritten(body: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(body).map(([given, value]) => {
    const name = given.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    return [name, OPEN.has(name) ? value : inner(value)]
  }))
}

function inner(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inner)
  const object = asObject(value)
  return object === null ? value : rewritten(object)
}
