import { OPENAI_FORMAT, errorObject } from '../shared/openai-format.ts'
import type { ClientFormat } from '../shared/protocol.ts'

/** As chat, but for errors in mid-stream. */
export const RESPONSES_FORMAT: ClientFormat = {
  ...OPENAI_FORMAT,
  protocol: 'responses',
  // The stream names its events; `error` at the top is what openai's client throws on.
  streamError: error => {
    const { message, code, param } = errorObject(error)
    const data = { type: 'error', code, message, param, error: errorObject(error) }
    return `event: error\ndata: ${JSON.stringify(data)}\n\n`
  },
}
