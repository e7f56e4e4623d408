import { GatewayError } from '../errors.ts'
import { modelName } from './inspect.ts'

/**
 * The model that a query names, or null.
 *
 * @param query with its question mark, or empty
 * @throws GatewayError model_ambiguous: of two names, parsers take the first or the last; model_not_found
 *   where the name is too long
 */
export function queryModel(query: string): string | null {
  const [model, ...others] = new URLSearchParams(query).getAll('model')
  if (model === undefined || model === '') return null
  if (others.some(other => other !== model)) {
    throw new GatewayError('model_ambiguous', "'model' is given more than once, with different values", {
      param: 'model',
    })
  }
  return modelName(model)
}

/** Puts another model's name into a query; the order and the bytes of the rest stay. */
export function renameQuery(query: string, model: string): string {
  return query.replace(/(?<=[?&])([^=&]*)=[^&]*/g, (pair, name: string) =>
    new URLSearchParams(`${name}=`).has('model') ? `${name}=${encodeURIComponent(model)}` : pair)
}
