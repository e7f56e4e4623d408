import { readFileSync } from 'node:fs'

/** The part of JSON Schema that gateway.schema.json uses and that is looked at beside ajv. */
export interface JsonSchema {
  readonly $ref?: string
  readonly title?: string
  readonly type?: string | readonly string[]
  readonly pattern?: string
  readonly enum?: readonly string[]
  readonly examples?: readonly unknown[]
  /** Marks a secret. */
  readonly writeOnly?: boolean
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly definitions?: Readonly<Record<string, JsonSchema>>
}

/** The published schema: the one description of the file's shape. */
export const SCHEMA_FILE = new URL('../../gateway.schema.json', import.meta.url)

/** Where the format of a value is fixed, the schema also allows `${NAME}`. */
const REFERENCE = '#/definitions/reference'

/** The schema of values in which the environment is filled in: no reference stands for any of them. */
export function readSchema(): JsonSchema {
  return JSON.parse(readFileSync(SCHEMA_FILE, 'utf8'), (_, part) => withoutReference(part)) as JsonSchema
}

function withoutReference(part: unknown): unknown {
  if (typeof part !== 'object' || part === null || !('anyOf' in part)) return part
  const { anyOf, ...rest } = part as JsonSchema & { anyOf: readonly JsonSchema[] }
  const choices = anyOf.filter(({ $ref }) => $ref !== REFERENCE)
  return choices.length === 1 ? { ...rest, ...choices[0] } : { ...rest, anyOf: choices }
}

/** What a schema stands for, once its reference and its choices are followed. */
export function alternatives(schema: JsonSchema, top: JsonSchema): JsonSchema[] {
  const name = schema.$ref?.slice('#/definitions/'.length)
  const target = (name === undefined ? undefined : top.definitions?.[name]) ?? schema
  return target.anyOf?.flatMap(choice => alternatives(choice, top)) ?? [target]
}

/** The schemas directly inside one, with the steps that lead there. */
export function childSchemas(schema: JsonSchema): [step: string, schema: JsonSchema][] {
  const { properties = {}, additionalProperties, items } = schema
  const named = Object.entries(properties).map(([name, child]): [string, JsonSchema] => [`.${name}`, child])
  if (typeof additionalProperties === 'object') named.push(['.<name>', additionalProperties])
  if (items) named.push(['[]', items])
  return named
}

/** Every word that the schema gives a meaning: the names of keys, and fixed values. */
export function schemaWords(top: JsonSchema): Set<string> {
  const words = new Set(['true', 'false', 'null'])
  const collect = (schema: JsonSchema): void => {
    for (const part of alternatives(schema, top)) {
      for (const word of [...Object.keys(part.properties ?? {}), ...part.enum ?? []]) words.add(word)
      for (const [, child] of childSchemas(part)) collect(child)
    }
  }
  collect(top)
  return words
}

/** The schemas of each key, from all places that have one of its name. */
export function schemasByKey(top: JsonSchema): Map<string, JsonSchema[]> {
  const known = new Map<string, JsonSchema[]>()
  const collect = (schema: JsonSchema): void => {
    for (const part of alternatives(schema, top)) {
      for (const [name, child] of Object.entries(part.properties ?? {})) known.set(name, [...known.get(name) ?? [], ...alternatives(child, top)])
      for (const [, child] of childSchemas(part)) collect(child)
    }
  }
  collect(top)
  return known
}
