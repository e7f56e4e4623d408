import { readFileSync } from 'node:fs'

/** The keywords of JSON Schema that gateway.schema.json uses and that code other than ajv reads. */
export interface JsonSchema {
  readonly $ref?: string
  readonly title?: string
  readonly type?: string | readonly string[]
  readonly pattern?: string
  readonly enum?: readonly string[]
  readonly examples?: readonly unknown[]
  /** true for a value that is a secret. */
  readonly writeOnly?: boolean
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly definitions?: Readonly<Record<string, JsonSchema>>
}

/** The published schema. Nothing else describes the structure of the file. */
export const SCHEMA_FILE = new URL('../../gateway.schema.json', import.meta.url)
/** The definition of `${NAME}`. The schema allows it where the format of a value is fixed. */
const REFERENCE = '#/definitions/reference'

/** The schema for values in which references are already expanded, so it allows no references. */
export function readSchema(): JsonSchema {
  return JSON.parse(readFileSync(SCHEMA_FILE, 'utf8'), (_, part) => withoutReference(part)) as JsonSchema
}

function withoutReference(part: unknown): unknown {
  if (typeof part !== 'object' || part === null || !('anyOf' in part)) return part
  const { anyOf, ...rest } = part as JsonSchema & { anyOf: readonly JsonSchema[] }
  const choices = anyOf.filter(({ $ref }) => $ref !== REFERENCE)
  return choices.length === 1 ? { ...rest, ...choices[0] } : { ...rest, anyOf: choices }
}

/** The alternatives of a schema, with references and choices resolved. */
export function alternatives(schema: JsonSchema, top: JsonSchema): JsonSchema[] {
  const name = schema.$ref?.slice('#/definitions/'.length)
  const target = (name === undefined ? undefined : top.definitions?.[name]) ?? schema
  return target.anyOf?.flatMap(choice => alternatives(choice, top)) ?? [target]
}

/** The child schemas of a schema, each with the step that leads to it. */
export function childSchemas(schema: JsonSchema): [step: string, schema: JsonSchema][] {
  const { properties = {}, additionalProperties, items } = schema
  const named = Object.entries(properties).map(([name, child]): [string, JsonSchema] => [`.${name}`, child])
  if (typeof additionalProperties === 'object') named.push(['.<name>', additionalProperties])
  if (items) named.push(['[]', items])
  return named
}

/** All words that have a meaning in the schema: names of keys, and fixed values. */
export function schemaWords(top: JsonSchema): Set<string> {
  const words = new Set(['true', 'false', 'null'])
  for (const { properties = {}, enum: values = [] } of allParts(top, top)) {
    for (const word of [...Object.keys(properties), ...values]) words.add(word)
  }
  return words
}

/** All schemas of each key name, from every place in the schema that has a key of that name. */
export function schemasByKey(top: JsonSchema): Map<string, JsonSchema[]> {
  const known = new Map<string, JsonSchema[]>()
  for (const { properties = {} } of allParts(top, top)) {
    for (const [name, child] of Object.entries(properties)) known.set(name, [...known.get(name) ?? [], ...alternatives(child, top)])
  }
  return known
}

/** The alternatives of a schema and of all its descendants. */
function allParts(schema: JsonSchema, top: JsonSchema): JsonSchema[] {
  return alternatives(schema, top).flatMap(part => [part, ...childSchemas(part).flatMap(([, child]) => allParts(child, top))])
}
