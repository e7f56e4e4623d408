import { Ajv, type Options, type ValidateFunction } from 'ajv'
import { readSchema } from './json-schema.ts'

export const RULES: Options = { allErrors: true, verbose: true, allowUnionTypes: true }

let compiled: ValidateFunction | null = null

/**
 * Checks a value against gateway.schema.json. The bundle contains this module's result instead (rolldown.config.js). Elsewhere
 * the first call compiles the schema in 60 ms; optimizing the code would take 70 ms more.
 */
export function validator(): ValidateFunction {
  return compiled ??= new Ajv({ ...RULES, code: { optimize: false } }).compile(readSchema())
}
