import type { IncomingMessage } from 'node:http'
import { VERSION } from './generate/paths.ts'
import { trimPath } from './endpoint/classified.ts'

/**
 * Writes that cost nothing: files, stored conversations, and cancellations. Everything else may use a model, or
 * storage that is billed by the day.
 */
const FREE_WRITES = new RegExp([
  '^/v1/(?:files|uploads(?:/[^/]+/(?:parts|complete|cancel))?|conversations(?:/[^/]+(?:/items)?)?)$',
  '^/v1/(?:responses|batches|messages/batches|fine_tuning/jobs|(?:threads|evals)/[^/]+/runs)/[^/]+/cancel$',
  `^/(?:upload/)?${VERSION}/files$`,
  `^/${VERSION}/(?:projects/[^/]+/locations/[^/]+/)?(?:interactions/[^/]+/cancel|(?:batches|batchpredictionjobs|tuningjobs)/[^/]+:cancel)$`,
  `^/${VERSION}/(?:[^:]+/)?operations/[^/:]+:(?:cancel|wait)$`,
  `^/${VERSION}/(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/[^/]+/models|endpoints)/[^/:]+:fetchpredictoperation$`,
].join('|'))

/** Headers with which a client asks some servers for another method than the request's. */
const METHOD_OVERRIDES = ['x-http-method-override', 'x-http-method', 'x-method-override']

/**
 * Does a request on an unmetered path cost nothing, whatever it names?
 *
 * @param path normalised, without its query
 * @param hasBody a GET with a body may be a search, which is not a read
 */
export function costsNothing({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>, path: string, hasBody: boolean): boolean {
  if (METHOD_OVERRIDES.some(name => headers[name] !== undefined)) return false
  if (method === 'DELETE') return true
  if (method === 'GET' || method === 'HEAD') return !hasBody
  return FREE_WRITES.test(trimPath(path.toLowerCase()).replaceAll('%3a', ':'))
}
