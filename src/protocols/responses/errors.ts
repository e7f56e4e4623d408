import { errorIn } from '../neutral/error-body.ts'
import { asObject } from '../neutral/json.ts'
import { readOpenaiError } from '../neutral/dialects/openai-error.ts'
import type { NeutralError } from '../neutral/response.ts'
import { OPENAI_FORMAT, errorObject } from '../endpoint/openai-format.ts'
import type { ClientFormat } from '../endpoint/protocol.ts'

export const RESPONSES_FORMAT: ClientFormat = {
  ...OPENAI_FORMAT,
  protocol: 'responses',
  // Events have names in this protocol. OpenAI's SDK throws if an event has a member `error`.
  streamError: error => {
    const { message, code, param } = errorObject(error)
    const data = { type: 'error', code, message, param, error: errorObject(error) }
    return `event: error\ndata: ${JSON.stringify(data)}\n\n`
  },
}

/** Reads an error, an event with a response, or a failed response. A failed response may contain no error. */
export function readResponsesError(status: number, body: unknown): NeutralError {
  const response = asObject(body)?.['response'] ?? body
  const error = readOpenaiError(status, response)
  const isSilent = asObject(response)?.['status'] === 'failed' && (errorIn(response)?.['message'] ?? null) === null
  return isSilent ? { ...error, message: 'the response failed, and the upstream does not say why' } : error
}
