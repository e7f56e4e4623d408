import { Ajv } from 'ajv'
import type { Options, ValidateFunction } from 'ajv'
import { readSchema } from './json-schema.ts'

export const RULES: Options = { allErrors: true, verbose: true, allowUnionTypes: true }

let compiled: ValidateFunction | null = null

/**
 * Checks whether a value fits gateway.schema.json. In the bundle this module is replaced by its result
 * (rolldown.config.js). Elsewhere the first call compiles the schema, which takes 60 ms; optimizing the code would take
 * 70 ms more.
 */
export function validator(): ValidateFunction {
  return compiled ??= new Ajv({ ...RULES, code: { optimize: false } }).compile(readSchema())
}
