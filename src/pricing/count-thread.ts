import { serveThread } from '../base/threads/thread-server.ts'
import { parseJsonRange } from '../protocols/json/cursor.ts'
import { responseTokens, promptTokens } from './body-tokens.ts'
import type { CountRequest, TokenCounts } from './token-counter.ts'
import { tokenCount } from './tokenizer.ts'

const count = tokenCount()

serveThread<CountRequest>((request): TokenCounts => {
  if (request.kind === 'texts') return request.texts.map(({ bytes, escaped }) => count(textOf(bytes, escaped)))
  const body = parseJsonRange(bufferOf(request.body), 0, request.body.length)
  return [request.kind === 'prompt' ? promptTokens(request.prompt, body, count) : responseTokens(request.members, body, count)]
})

/** @returns the decoded text of a JSON string, or JSON without white space; if `bytes` is incomplete JSON, its text unchanged */
function textOf(bytes: Uint8Array, escaped: boolean): string {
  const text = bufferOf(bytes).toString('utf8')
  if (escaped && !text.includes('\\')) return text
  const json = Buffer.from(escaped ? `"${text}"` : text)
  const parsed = parseJsonRange(json, 0, json.length)
  if (Number.isNaN(parsed)) return text
  return typeof parsed === 'string' ? parsed : JSON.stringify(parsed)
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}
