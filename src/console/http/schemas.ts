import { Ajv, type ErrorObject, type Options } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifySchemaCompiler } from 'fastify'
import { ConsoleProblem } from './console-problem.ts'

/** Creates validators that remove no members. Only texts in the URL are converted to numbers. */
export function validatorCompiler(): FastifySchemaCompiler<unknown> {
  const strict = createAjv({})
  const ofUrl = createAjv({ coerceTypes: true })
  return ({ schema, httpPart }) => (httpPart === 'body' ? strict : ofUrl).compile(schema as object)
}

function createAjv(options: Options): Ajv {
  const ajv = new Ajv({ useDefaults: true, strict: false, allErrors: false, ...options })
  // A cast is needed: the types of the package declare the function as its namespace.
  ;(addFormats as unknown as (ajv: Ajv) => void)(ajv)
  return ajv
}

export function validationProblem(errors: readonly ErrorObject[], part: string): ConsoleProblem {
  // For a union, only the last error is about the union. Earlier errors are about single alternatives.
  const error = errors.at(-1)
  if (error === undefined) return new ConsoleProblem('bad_request', `The ${part} is invalid.`)
  const { keyword, params, instancePath, message = 'is invalid' } = error
  const steps = instancePath.split('/').slice(1)
  if (keyword === 'required') steps.push(String(params['missingProperty']))
  if (keyword === 'additionalProperties') steps.push(String(params['additionalProperty']))
  const field = steps.join('.')
  const subject = field === '' ? `The ${part}` : field
  const why = keyword === 'required' ? 'is missing'
    : keyword === 'additionalProperties' ? 'is not a known field'
    : keyword === 'enum' ? `must be one of ${(params['allowedValues'] as string[]).join(', ')}`
    : keyword === 'anyOf' ? 'does not match any accepted form'
    : message
  return new ConsoleProblem('bad_request', `${subject} ${why}.`, field === '' ? {} : { field })
}
