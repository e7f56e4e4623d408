import { isErrorBody } from '../../protocols/usage/response-body.ts'
import type { Exchange } from './exchange.ts'

/** Bytes. A longer body is not searched for an error. */
const MAX_ERROR_BYTES = 64 * 1024

const ERROR_FIELDS = /"(?:error|base_resp|failed)"/

/** @returns true = the client got an error of the upstream, by its status or in the content */
export function clientReceivedError(exchange: Exchange): boolean {
  return exchange.delivery.status >= 400 || isErrorContent(exchange)
}

/** @returns true = the content so far reports an error of the upstream */
export function isErrorContent({ response, servedBy }: Exchange): boolean {
  if (response?.kind === 'stream') return response.meter.sawError && !servedBy?.completedByGateway
  const isPlain = (servedBy?.response?.encoding ?? null) === null
  if (response?.kind !== 'body' || !isPlain || response.body.length > MAX_ERROR_BYTES) return false
  const { body } = response
  // Search before parsing, because few responses have an error field. Searching text is three times as fast as searching bytes.
  return ERROR_FIELDS.test(body.toString('latin1')) && isErrorBody(body)
}

/** The error in the content of a response with the status of a success; null = not readable. */
export function errorContent({ response, servedBy }: Exchange): Buffer | null {
  if (response?.kind === 'stream') return response.meter.errorEvent === null ? null : Buffer.from(response.meter.errorEvent)
  const isPlain = (servedBy?.response?.encoding ?? null) === null
  return response?.kind === 'body' && isPlain ? response.body : null
}
