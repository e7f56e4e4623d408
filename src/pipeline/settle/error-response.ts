import type { Exchange } from '../../context/exchange.ts'
import { isErrorBody } from '../../protocols/response-body.ts'

/** Bytes of a whole answer that is nothing but an error: none is longer. */
const MOST_ERROR = 64 * 1024

const WORDS = /"(?:error|base_resp)"/

/** Does the answer that the client got tell of an error of the upstream's own, whatever its status? */
export function toldError(exchange: Exchange): boolean {
  return exchange.status >= 400 || saysError(exchange)
}

/** Is what came of an answer the upstream's telling of an error? */
export function saysError({ answer, answerEncoding, madeWhole }: Exchange): boolean {
  if (answer?.kind === 'stream') return answer.meter.sawError && !madeWhole
  if (answer?.kind !== 'body' || answerEncoding !== null || answer.body.length > MOST_ERROR) return false
  const { body } = answer
  // Hardly any answer has one of the words, and only those that do are walked. As a text, which is searched in
  // a third of the time that bytes are, quotation marks being so many.
  return WORDS.test(body.toString('latin1')) && isErrorBody(body)
}
