import { Ajv } from 'ajv'
import type { Options, ValidateFunction } from 'ajv'
import { readSchema } from './json-schema.ts'

export const RULES: Options = { allErrors: true, verbose: true, allowUnionTypes: true }

/**
 * Says whether a value fits gateway.schema.json. In the bundle this module is what
 * it returns (rolldown.config.js): to compile the schema takes 60 ms of a start.
 */
export function validator(): ValidateFunction {
  return new Ajv(RULES).compile(readSchema())
}
