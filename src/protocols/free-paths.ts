import type { IncomingMessage } from 'node:http'
import { PROTOCOLS } from './index.ts'
import { trimPath } from './endpoint/classified.ts'

/** Headers with which a client can replace the method of its request at some servers. */
const METHOD_OVERRIDES = ['x-http-method-override', 'x-http-method', 'x-method-override']

/**
 * Tells whether a request on an unmetered path costs nothing, even if the request names a model.
 * @param path normalised, without the query
 * @param hasBody true if the request has a body: a GET with a body may be a search, which can cost something
 */
export function costsNothing({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>, path: string, hasBody: boolean): boolean {
  if (METHOD_OVERRIDES.some(name => headers[name] !== undefined)) return false
  if (method === 'DELETE') return true
  if (method === 'GET' || method === 'HEAD') return !hasBody
  const plain = trimPath(path.toLowerCase()).replaceAll('%3a', ':')
  return PROTOCOLS.some(({ freeWrites }) => freeWrites?.test(plain))
}
