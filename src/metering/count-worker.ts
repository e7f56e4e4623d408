import { parentPort } from 'node:worker_threads'
import { parseJson } from './cursor.ts'
import type { CountAnswer, CountRequest } from './estimate.ts'
import { answerTokens, promptTokens } from './prompt.ts'
import { tokenCount } from './tokens.ts'

/** The thread behind estimate.ts: it answers each CountRequest with a CountAnswer, in order. */

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

const count = tokenCount()

port.on('message', (request: CountRequest) => {
  const answer: CountAnswer = { id: request.id, counts: answerTo(request) }
  port.postMessage(answer)
})

function answerTo(request: CountRequest): readonly (number | null)[] {
  if (request.what === 'texts') return request.texts.map(({ bytes, escaped }) => count(textOf(bytes, escaped)))
  const body = parseJson(bufferOf(request.body), 0, request.body.length)
  const tokens = request.what === 'prompt' ? promptTokens : answerTokens
  return [tokens(request.endpoint, body, count)]
}

/** The text of a run: the inside of a JSON string, or, if it is not one after all, the bytes as they are. */
function textOf(bytes: Uint8Array, escaped: boolean): string {
  const text = bufferOf(bytes).toString('utf8')
  if (!escaped || !text.includes('\\')) return text
  const quoted = Buffer.from(`"${text}"`)
  const parsed = parseJson(quoted, 0, quoted.length)
  return typeof parsed === 'string' ? parsed : text
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}
