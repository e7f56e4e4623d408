import { isErrorBody } from '../protocols/shared/response-body.ts'
import type { Exchange } from './exchange.ts'

/** Bytes of a whole answer that is nothing but an error: none is longer. */
const MAX_ERROR_BYTES = 64 * 1024

const ERROR_FIELDS = /"(?:error|base_resp)"/

/** Does the answer that the client got tell of an error of the upstream's own, whatever its status? */
export function clientReceivedError(exchange: Exchange): boolean {
  return exchange.status >= 400 || isErrorContent(exchange)
}

/** Is what came of an answer the upstream's telling of an error? */
export function isErrorContent({ response: answer, responseEncoding: answerEncoding, completedByGateway: madeWhole }: Exchange): boolean {
  if (answer?.kind === 'stream') return answer.meter.sawError && !madeWhole
  if (answer?.kind !== 'body' || answerEncoding !== null || answer.body.length > MAX_ERROR_BYTES) return false
  const { body } = answer
  // Hardly any answer has one of the words, and only those that do are walked. As a text, which is searched in
  // a third of the time that bytes are, quotation marks being so many.
  return ERROR_FIELDS.test(body.toString('latin1')) && isErrorBody(body)
}
