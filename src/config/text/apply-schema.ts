import type { ErrorObject, ValidateFunction } from 'ajv'
import { isObject } from '../../base/is-object.ts'
import { locate, type Located, type Path } from './document.ts'
import type { Findings } from './findings.ts'
import type { JsonSchema } from '../json-schema.ts'
import type { RawConfig } from '../raw.ts'
import { describeError, toPath } from './schema-errors.ts'
import { validator } from '../validator.ts'

/**
 * Reports every violation of gateway.schema.json.
 * @returns a copy without the wrong parts, so that the rest can be checked: all types in the copy are right, but any value may be missing,
 * even a required value
 */
export function applySchema(schema: JsonSchema, root: Located, findings: Findings): RawConfig {
  const data = { value: copyOf(root) }
  const errors = validateCoercing(validator(), data, root)
  for (const error of relevantErrors(errors)) {
    const { path, message, at, suggestion: meant } = describeError(error, schema, root)
    const isMistyped = error.keyword === 'required' && findings.has(path)
    const kind = error.keyword === 'required' ? message : error.keyword
    if (!isMistyped) findings.error(path, message, at, kind)
    if (meant) findings.markMistyped(meant)
    remove(data.value, path)
  }
  return (isObject(data.value) ? data.value : {}) as RawConfig
}

/** Copies the values. Places that share a value through an alias get separate copies, because each place can lose different parts. */
function copyOf({ value, children }: Located): unknown {
  if (Array.isArray(value)) return [...children.values()].map(copyOf)
  if (!isObject(value)) return value
  const copy = Object.create(null) as Record<string, unknown>
  for (const [name, child] of children) copy[name] = copyOf(child)
  return copy
}

/**
 * Validates. Environment variables are text: if a reference is at a place where the schema expects a number or a boolean, its text is
 * converted.
 */
function validateCoercing(validate: ValidateFunction, data: { value: unknown }, root: Located): ErrorObject[] {
  if (validate(data.value)) return []
  const errors = validate.errors ?? []
  let coerced = false
  for (const { keyword, instancePath, parentSchema } of errors) {
    // If the schema also allows text, as for a size, `pattern` fails instead of `type`.
    if (keyword !== 'type' && keyword !== 'pattern') continue
    const path = toPath(instancePath)
    const located = locate(root, path)
    if (!located?.referenced || typeof located.value !== 'string') continue
    const value = coerce(located.value, [(parentSchema as JsonSchema).type ?? []].flat())
    if (value === undefined) continue
    assign(data, path, value)
    coerced = true
  }
  if (!coerced) return errors
  validate(data.value)
  return validate.errors ?? []
}

function coerce(text: string, types: readonly string[]): number | boolean | undefined {
  if (types.includes('boolean') && /^(true|false)$/.test(text)) return text === 'true'
  const numeric = types.includes('number') || types.includes('integer')
  return numeric && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined
}

/**
 * Removes repeated errors of `anyOf`: only the errors of the alternative that has the type of the value remain, or else the error of
 * `anyOf`.
 */
function relevantErrors(errors: readonly ErrorObject[]): ErrorObject[] {
  const choices = new Set<string>()
  const settled = new Set<string>()
  for (const { keyword, instancePath } of errors) {
    if (keyword === 'anyOf') choices.add(instancePath)
    else if (!isTypeMismatch(keyword)) settled.add(instancePath)
    for (let path = instancePath; path !== '';) {
      path = path.slice(0, path.lastIndexOf('/'))
      settled.add(path)
    }
  }
  const reported = errors.filter(({ keyword, instancePath }) => {
    if (keyword === 'propertyNames') return false // the rule for the name reports its own error
    if (!choices.has(instancePath)) return true
    const isEcho = isTypeMismatch(keyword) || keyword === 'anyOf'
    return settled.has(instancePath) ? !isEcho : keyword === 'anyOf'
  })
  // Sort missing keys to the end: the other errors tell whether such a key was mistyped.
  return reported.sort((a, b) => Number(a.keyword === 'required') - Number(b.keyword === 'required'))
}

/** Tells whether the error says no more than that a value matches no alternative. */
function isTypeMismatch(keyword: string): boolean {
  return keyword === 'type' || keyword === 'enum'
}

function remove(data: unknown, path: Path): void {
  const last = path.at(-1)
  const holder = path.slice(0, -1).reduce<unknown>(step, data)
  if (last === undefined) return
  if (Array.isArray(holder)) holder[Number(last)] = undefined
  else if (isObject(holder)) delete holder[last]
}

function assign(data: { value: unknown }, path: Path, value: unknown): void {
  const last = path.at(-1)
  const holder = path.slice(0, -1).reduce<unknown>(step, data.value)
  if (last === undefined) data.value = value
  else if (Array.isArray(holder) || isObject(holder)) (holder as Record<string, unknown>)[last] = value
}

function step(value: unknown, name: string | number): unknown {
  return Array.isArray(value) || isObject(value) ? (value as Record<string, unknown>)[name] : undefined
}
