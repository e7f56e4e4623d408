import { singleModel } from './inspect.ts'
import { GATEWAY_KEY_HEADER, KEY_HEADERS } from '../http/vendor-headers.ts'

/**
 * Finds the parameters that name the model. Queries of Azure's realtime sessions have an API version, and name the model in `deployment`,
 * in any case.
 */
function modelParams(params: URLSearchParams): (name: string) => boolean {
  const isVersioned = params.keys().some(name => name.toLowerCase() === 'api-version')
  const pattern = isVersioned ? /^(?:model|deployment)$/i : /^model$/i
  return name => pattern.test(name)
}

/**
 * The model that a query names; null = none.
 * @param query with the question mark, or empty
 * @throws GatewayError model_ambiguous if two names differ, because parsers use the first or the last; model_not_found if the name is too
 * long
 */
export function queryModel(query: string): string | null {
  if (query === '') return null
  const params = new URLSearchParams(query)
  const isModel = modelParams(params)
  return singleModel([...params].flatMap(([name, value]) => (isModel(name) ? [value] : [])))
}

/**
 * Refuses a query that names a model other than `model`, because some upstreams prefer the query's model (LiteLLM's proxy on every path).
 * @throws GatewayError model_ambiguous
 */
export function checkQueryModel(model: string, query: string): void {
  const other = queryModel(query)
  if (other !== null) singleModel([model, other])
}

/** Replaces the model's name in a query. The other parameters stay unchanged. */
export function renameQuery(query: string, model: string): string {
  if (query === '') return query
  const isModel = modelParams(new URLSearchParams(query))
  return query.replace(/(?<=[?&])([^=&]*)=[^&]*/g, (pair, name: string) => {
    const isNamed = new URLSearchParams(`${name}=`).keys().some(isModel)
    return isNamed ? `${name}=${encodeURIComponent(model)}` : pair
  })
}

/** Converts an Azure query to the common form, which has `model` and no API version. */
export function canonicalQuery(query: string): string {
  if (query === '') return query
  const pairs = query.slice(1).split('&')
    .filter(pair => !/^api-version(?:=|$)/i.test(pair))
    .map(pair => pair.replace(/^deployment=/i, 'model='))
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

const GOOGLE_KEY_PARAM = 'key'
/** Azure's parameter for a credential, used mainly for WebSockets. */
const AZURE_KEY_PARAM = 'api-key'
/** Parameters that are never forwarded, in lower case and with hyphens. */
const KEY_PARAMS: ReadonlySet<string> = new Set([GOOGLE_KEY_PARAM, AZURE_KEY_PARAM, 'apikey', GATEWAY_KEY_HEADER, ...KEY_HEADERS])

export interface QueryKey {
  /** The value of `?key=` or `?api-key=`; null = none. */
  readonly queryKey: string | null
  /** true if the key is the value of Google's parameter `?key=`. */
  readonly isGoogles: boolean
}

/** Removes all parameters that can contain a credential. The other parameters stay unchanged. @param query with `?`, or empty */
export function extractKey(query: string): QueryKey & { readonly query: string } {
  if (!/key|%/i.test(query)) return { query, queryKey: null, isGoogles: false }
  let queryKey: string | null = null
  let isGoogles = false
  const pairs = query.slice(1).split('&')
  const rest = pairs.filter(pair => {
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    if (!KEY_PARAMS.has(name.toLowerCase().replaceAll('_', '-'))) return true
    const isCredential = name === GOOGLE_KEY_PARAM || name === AZURE_KEY_PARAM
    if (isCredential && equals !== -1 && queryKey === null) {
      queryKey = decode(pair.slice(equals + 1))
      isGoogles = name === GOOGLE_KEY_PARAM
    }
    return false
  })
  return { query: rest.length > 0 ? `?${rest.join('&')}` : '', queryKey, isGoogles }
}

/** Percent-decodes a part of a query. */
export function decode(raw: string): string {
  if (!raw.includes('%')) return raw
  try {
    return decodeURIComponent(raw)
  } catch {
    // An escape is invalid, so compare the part as it is written.
    return raw
  }
}
