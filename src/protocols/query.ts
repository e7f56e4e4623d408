import { oneModel } from './inspect.ts'

/**
 * The model that a query names, or null.
 *
 * @param query with its question mark, or empty
 * @throws GatewayError model_ambiguous: of two names, parsers take the first or the last; model_not_found
 *   where the name is too long
 */
export function queryModel(query: string): string | null {
  return oneModel(new URLSearchParams(query).getAll('model'))
}

/** Puts another model's name into a query; the order and the bytes of the rest stay. */
export function renameQuery(query: string, model: string): string {
  return query.replace(/(?<=[?&])([^=&]*)=[^&]*/g, (pair, name: string) =>
    new URLSearchParams(`${name}=`).has('model') ? `${name}=${encodeURIComponent(model)}` : pair)
}
