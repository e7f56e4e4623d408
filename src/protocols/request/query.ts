import { singleModel } from './inspect.ts'
import { GATEWAY_KEY_HEADER, KEY_HEADERS } from '../http/vendor-headers.ts'

/** The parameters that name the model. Azure's realtime sessions, which have an API version, name it `deployment`, in any case. */
function modelParams(params: URLSearchParams): (name: string) => boolean {
  const isVersioned = params.keys().some(name => name.toLowerCase() === 'api-version')
  const pattern = isVersioned ? /^(?:model|deployment)$/i : /^model$/i
  return name => pattern.test(name)
}

/**
 * The model that a query names; null = none. @param query with its question mark, or empty
 * @throws GatewayError model_ambiguous: of two names, parsers take the first or the last; model_not_found if the name is too long
 */
export function queryModel(query: string): string | null {
  if (query === '') return null
  const params = new URLSearchParams(query)
  const isModel = modelParams(params)
  return singleModel([...params].flatMap(([name, value]) => (isModel(name) ? [value] : [])))
}

/**
 * Refuses a query that names another model than `model`: some upstreams (LiteLLM's proxy on every path) prefer the query's.
 * @throws GatewayError model_ambiguous
 */
export function checkQueryModel(model: string, query: string): void {
  const other = queryModel(query)
  if (other !== null) singleModel([model, other])
}

/** Puts another model's name into a query; order and bytes of the rest stay. */
export function renameQuery(query: string, model: string): string {
  if (query === '') return query
  const isModel = modelParams(new URLSearchParams(query))
  return query.replace(/(?<=[?&])([^=&]*)=[^&]*/g, (pair, name: string) => {
    const isNamed = new URLSearchParams(`${name}=`).keys().some(isModel)
    return isNamed ? `${name}=${encodeURIComponent(model)}` : pair
  })
}

/** Converts a query of Azure's to the common form: with a `model`, and without an API version. */
export function canonicalQuery(query: string): string {
  if (query === '') return query
  const pairs = query.slice(1).split('&')
    .filter(pair => !/^api-version(?:=|$)/i.test(pair))
    .map(pair => pair.replace(/^deployment=/i, 'model='))
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

const GOOGLE_KEY_PARAM = 'key'
/** Azure's parameter for a credential, mainly for WebSockets. */
const AZURE_KEY_PARAM = 'api-key'
/** Parameters that are never forwarded, in lower case and with hyphens. */
const KEY_PARAMS: ReadonlySet<string> = new Set([GOOGLE_KEY_PARAM, AZURE_KEY_PARAM, 'apikey', GATEWAY_KEY_HEADER, ...KEY_HEADERS])

export interface QueryKey {
  /** The value of `?key=` or `?api-key=`; null = none. */
  readonly queryKey: string | null
  /** The key came in Google's parameter `?key=`. */
  readonly isGoogles: boolean
}

/** Removes the credential and every parameter with a credential's name; order and bytes of the rest stay. @param query with `?`, or empty */
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
    // Invalid escape: compare the part as written.
    return raw
  }
}
