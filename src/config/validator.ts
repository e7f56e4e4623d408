import { Ajv, type Options, type ValidateFunction } from 'ajv'
import { readSchema } from './json-schema.ts'

export const RULES: Options = { allErrors: true, verbose: true, allowUnionTypes: true }

let compiled: ValidateFunction | null = null

/**
 * Creates the check of values against gateway.schema.json. In the bundle, a compiled check replaces this module (rolldown.config.js).
 * Otherwise the first call compiles the schema in 60 ms. Optimizing the compiled code would take 70 ms more.
 */
export function validator(): ValidateFunction {
  return compiled ??= new Ajv({ ...RULES, code: { optimize: false } }).compile(readSchema())
}
