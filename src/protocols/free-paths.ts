import type { IncomingMessage } from 'node:http'
import { VERSION } from './generate/paths.ts'
import { trimPath } from './endpoint/classified.ts'

/**
 * What is written without cost: files and stored conversations, and the cancellation of work. Everything else may use a model, or space
 * that is billed by the day.
 */
const FREE_WRITES = new RegExp([
  '^/v1/(?:files|uploads(?:/[^/]+/(?:parts|complete|cancel))?|conversations(?:/[^/]+(?:/items)?)?)$',
  '^/v1/(?:responses|batches|messages/batches|fine_tuning/jobs|(?:threads|evals)/[^/]+/runs)/[^/]+/cancel$',
  `^/(?:upload/)?${VERSION}/files$`,
  `^/${VERSION}/(?:projects/[^/]+/locations/[^/]+/)?(?:interactions/[^/]+/cancel|(?:batches|batchpredictionjobs|tuningjobs)/[^/]+:cancel)$`,
  `^/${VERSION}/(?:[^:]+/)?operations/[^/:]+:(?:cancel|wait)$`,
  `^/${VERSION}/(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/[^/]+/models|endpoints)/[^/:]+:fetchpredictoperation$`,
].join('|'))

/** Headers with which a client asks some servers for another method than that of the request. */
const METHOD_OVERRIDES = ['x-http-method-override', 'x-http-method', 'x-method-override']

/**
 * Does a request on a path that is not metered cost nothing, whatever it names?
 *
 * @param path normalised, without its query
 * @param hasBody a read has none; a search can be a GET with a body
 */
export function costsNothing({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>, path: string, hasBody: boolean): boolean {
  if (METHOD_OVERRIDES.some(name => headers[name] !== undefined)) return false
  if (method === 'DELETE') return true
  if (method === 'GET' || method === 'HEAD') return !hasBody
  return FREE_WRITES.test(trimPath(path.toLowerCase()).replaceAll('%3a', ':'))
}
