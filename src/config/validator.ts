import { Ajv } from 'ajv'
import type { Options, ValidateFunction } from 'ajv'
import { readSchema } from './json-schema.ts'

export const RULES: Options = { allErrors: true, verbose: true, allowUnionTypes: true }

/**
 * Checks whether a value fits gateway.schema.json. In the bundle this module is replaced by its result
 * (rolldown.config.js), because compiling the schema takes 60 ms at startup.
 */
export function validator(): ValidateFunction {
  return new Ajv(RULES).compile(readSchema())
}
