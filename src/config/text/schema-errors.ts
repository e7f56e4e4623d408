import type { ErrorObject } from 'ajv'
import { isObject } from '../../base/is-object.ts'
import { locate, type Located, type Path } from './document.ts'
import { formatPath } from './findings.ts'
import { alternatives, childSchemas, type JsonSchema } from '../json-schema.ts'
import { didYouMean, nearest } from '../nearest.ts'
import { isPlainName } from './secrets.ts'

export interface SchemaProblem {
  readonly path: Path
  readonly message: string
  readonly at: 'key' | 'value'
  /** The key that a mistyped key probably means. */
  readonly suggestion?: Path
}

const TYPE_NAMES: ReadonlyMap<string, string> = new Map(Object.entries({
  object: 'a map of "name: value" lines',
  array: 'a list',
  string: 'text',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
}))

/** Describes an error: what to change, and where. Shows no value. */
export function describeError(error: ErrorObject, schema: JsonSchema, root: Located): SchemaProblem {
  const path = toPath(error.instancePath)
  const holder = error.parentSchema as JsonSchema
  if (error.keyword === 'additionalProperties') {
    const name = String(error.params['additionalProperty'])
    return unknownKey(path, name, holder, schema, isObject(locate(root, [...path, name])?.value))
  }
  if (error.keyword === 'required') {
    const name = String(error.params['missingProperty'])
    const what = path.length === 0 ? 'the file' : formatPath(path)
    return { path: [...path, name], message: `${what} needs "${name}"`, at: 'key' }
  }
  if (error.propertyName !== undefined) {
    return { path: [...path, error.propertyName], message: `this must be ${expectedText(holder, 'text')}`, at: 'key' }
  }
  const located = locate(root, path)
  if (located?.value === null && !located.faulty) {
    // Do not show the name: it may be a name and a secret without a colon between them.
    return { path, message: 'there is no value here; give one, or remove the line', at: 'value' }
  }
  const subject = path.length === 0 ? 'the file' : formatPath(path)
  const isForeign = located?.referenced && located.value !== ''
  const origin = isForeign ? ', which the value from the environment is not' : ''
  return { path, message: `${subject} ${violationText(error, holder, located, schema)}${origin}`, at: 'value' }
}

function violationText(error: ErrorObject, holder: JsonSchema, located: Located | undefined, schema: JsonSchema): string {
  const { keyword, params } = error
  const value = located?.value
  if (value === '') return located?.referenced ? 'is empty: the environment variable has no value' : 'must not be empty'
  switch (keyword) {
    case 'type': {
      const types = [params['type']].flat() as string[]
      const names = types.map(type => TYPE_NAMES.get(type) ?? type)
      const what = error.instancePath === '' ? joinWithOr(names) : expectedText(holder, joinWithOr(names))
      return `must be ${what}${quoteHint(types, holder, located)}`
    }
    case 'enum': {
      const allowed = params['allowedValues'] as string[]
      const guess = typeof value === 'string' ? didYouMean(value, allowed) : ''
      return `must be ${joinWithOr(allowed)}${guess}`
    }
    case 'anyOf': {
      const text = alternatives(holder, schema).find(({ type }) => type === 'string')
      return `must be ${expectedText(holder, 'something else')}${text ? quoteHint(['string'], text, located) : ''}`
    }
    case 'pattern': return `must be ${expectedText(holder, 'something else')}`
    case 'minItems':
    case 'minProperties':
      return `needs at least ${params['limit'] === 1 ? 'one entry' : `${params['limit']} entries`}`
    default: return error.message ?? `breaks the schema's rule "${keyword}"`
  }
}

/** What a value must be: `a duration such as 250ms, 10s or 30m`. */
function expectedText(holder: JsonSchema, fallback: string): string {
  const what = holder.title ?? fallback
  const examples = holder.title === undefined ? [] : (holder.examples ?? []).map(String)
  return examples.length === 0 ? what : `${what} such as ${joinWithOr(examples)}`
}

function quoteHint(types: readonly string[], holder: JsonSchema, located: Located | undefined): string {
  const { value, text, referenced } = located ?? {}
  const isLiteral = typeof value === 'number' || typeof value === 'boolean'
  const fits = new RegExp(holder.pattern ?? '').test(text ?? '')
  if (types.length === 1 && types[0] === 'string' && isLiteral && fits) return '; put quotes round it'
  const looksRight = typeof value === 'string' && /^(-?[\d.]+|true|false)$/.test(value)
  return looksRight && !referenced && !types.includes('string') ? '; remove the quotes' : ''
}

function unknownKey(path: Path, name: string, holder: JsonSchema, schema: JsonSchema, holdsMap: boolean): SchemaProblem {
  const where = path.length === 0 ? '' : ` in ${formatPath(path)}`
  const known = Object.keys(holder.properties ?? {})
  const guess = nearest(name, known)
  const shown = guess !== null || isPlainName(name) ? `unknown key "${name}"` : 'unknown key'
  const problem = (hint: string): SchemaProblem => ({ path: [...path, name], message: `${shown}${where}; ${hint}`, at: 'key' })
  if (guess !== null) return { ...problem(`did you mean "${guess}"?`), suggestion: [...path, guess] }
  const homes = pathsOfKey(name, holdsMap, schema, schema, '')
  return problem(homes.length > 0 ? `it belongs under ${joinWithOr(homes)}` : `known here: ${known.join(', ')}`)
}

/** The paths at which the schema has a key of this name. @param holdsMap true = only paths whose value is a map */
function pathsOfKey(name: string, holdsMap: boolean, schema: JsonSchema, top: JsonSchema, at: string): string[] {
  const homes = new Set<string>()
  for (const part of alternatives(schema, top)) {
    const home = Object.hasOwn(part.properties ?? {}, name) ? part.properties?.[name] : undefined
    const fits = home && (!holdsMap || alternatives(home, top).some(({ type }) => type === 'object'))
    if (at !== '' && fits) homes.add(at.slice(1))
    for (const [step, child] of childSchemas(part)) {
      for (const home of pathsOfKey(name, holdsMap, child, top, at + step)) homes.add(home)
    }
  }
  return [...homes]
}

function joinWithOr(items: readonly string[]): string {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`
}

export function toPath(pointer: string): string[] {
  return pointer.split('/').slice(1).map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}
