import Anthropic from '@anthropic-ai/sdk'
import { ApiError } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { anthropicClient, genaiClient, openaiClient, startTranslating } from '../../support/translating-gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

interface Failure {
  readonly status: number
  readonly retryAfter: string | null | undefined
  readonly requestId: string | null | undefined
  readonly text: string
}

const failed = (error: unknown): Failure => {
  if (error instanceof ApiError) return { status: error.status, retryAfter: undefined, requestId: undefined, text: error.message }
  const { status, headers, requestID, message } = error as InstanceType<typeof OpenAI.APIError>
  return { status: status ?? 0, retryAfter: headers?.get('retry-after'), requestId: requestID, text: message }
}
const messages = [{ role: 'user' as const, content: 'Hi' }]

/** What each client throws at a request that fails. */
const CLIENTS: Readonly<Record<string, (gateway: TestGateway) => PromiseLike<unknown>>> = {
  chat: gateway => openaiClient(gateway).chat.completions.create({ model: 'm', messages }),
  messages: gateway => anthropicClient(gateway).messages.create({ model: 'm', max_tokens: 9, messages }),
  responses: gateway => openaiClient(gateway).responses.create({ model: 'm', input: 'Hi' }),
  generate: gateway => genaiClient(gateway).models.generateContent({ model: 'm', contents: 'Hi' }),
}

const openaiError = (status: number): JsonObject => ({ error: {
  message: 'Slow down.', param: null, ...status === 429 ? { type: 'rate_limit_error', code: 'rate_limit_exceeded' } : { type: 'invalid_request_error', code: null },
} })
/** What each upstream says, and where it names the request. */
const UPSTREAMS: Readonly<Record<string, { readonly header: string, error(status: number): JsonObject }>> = {
  chat: { header: 'x-request-id', error: openaiError },
  messages: { header: 'request-id', error: status => ({ type: 'error', error: { type: status === 429 ? 'rate_limit_error' : 'invalid_request_error', message: 'Slow down.' } }) },
  responses: { header: 'x-request-id', error: openaiError },
  generate: { header: 'x-request-id', error: status => ({ error: { code: status, message: 'Slow down.', status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'INVALID_ARGUMENT' } }) },
}

for (const [from, client] of Object.entries(CLIENTS)) {
  for (const [to, { header, error }] of Object.entries(UPSTREAMS)) {
    if (from === to) continue
    t.test(`${from} -> ${to}: an error keeps its status, type, message, retry-after and request id`, async t => {
      for (const status of [429, 400]) {
        const { gateway } = await startTranslating(t, { up: { speaks: to, responses: [{ status, headers: { [header]: 'req-up', 'retry-after': '7' }, body: error(status) }] } }, ', retries: 0')
        const thrown: unknown = await Promise.resolve(client(gateway)).then(() => null, (reason: unknown) => reason)
        t.match(failed(thrown), { status, text: /Slow down\./ })
        if (from === 'generate') {
          t.match(failed(thrown).text, status === 429 ? 'RESOURCE_EXHAUSTED' : 'INVALID_ARGUMENT')
          continue
        }
        t.match(failed(thrown), { retryAfter: '7', requestId: 'req-up' })
        const [rateLimit, invalid] = from === 'messages' ? [Anthropic.RateLimitError, Anthropic.BadRequestError] : [OpenAI.RateLimitError, OpenAI.BadRequestError]
        t.ok(thrown instanceof (status === 429 ? rateLimit : invalid))
        const type = (thrown as { readonly type?: unknown }).type
        t.equal(type, status === 429 ? 'rate_limit_error' : 'invalid_request_error')
      }
    })
  }
}
