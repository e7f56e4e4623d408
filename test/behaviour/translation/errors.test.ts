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

/** Requests of each client; the test checks the errors that the clients throw. */
const CLIENTS: Readonly<Record<string, (gateway: TestGateway) => PromiseLike<unknown>>> = {
  chat: gateway => openaiClient(gateway).chat.completions.create({ model: 'm', messages }),
  messages: gateway => anthropicClient(gateway).messages.create({ model: 'm', max_tokens: 9, messages }),
  responses: gateway => openaiClient(gateway).responses.create({ model: 'm', input: 'Hi' }),
  generate: gateway => genaiClient(gateway).models.generateContent({ model: 'm', contents: 'Hi' }),
}

const openaiError = (status: number): JsonObject => ({ error: {
  message: 'Slow down.', param: null, ...status === 429 ? { type: 'rate_limit_error', code: 'rate_limit_exceeded' } : { type: 'invalid_request_error', code: null },
} })
/** Errors of each upstream, and the header with its request id. */
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

/** Errors of each vendor about a request that is too long for the model. */
const TOO_LONG: Readonly<Record<string, JsonObject>> = {
  chat: { error: { message: "This model's maximum context length is 8192 tokens.", type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' } },
  messages: { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' } },
  responses: { error: { message: 'Your input exceeds the context window of this model.', type: 'invalid_request_error', param: 'input', code: 'context_length_exceeded' } },
  generate: { error: { code: 400, message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).', status: 'INVALID_ARGUMENT' } },
}

for (const [to, body] of Object.entries(TOO_LONG)) {
  t.test(`${to}: a request beyond the context window gives an error of the client's protocol, or goes to on.context_length`, async t => {
    for (const [from, client] of Object.entries(CLIENTS)) {
      if (from === to) continue
      const { gateway } = await startTranslating(t, { up: { speaks: to, responses: [{ status: 400, body }] } }, ', retries: 0')
      const thrown: unknown = await Promise.resolve(client(gateway)).then(() => null, (reason: unknown) => reason)
      // Claude Code compacts the conversation after this text, and Codex after this code.
      if (from === 'messages') t.match(failed(thrown).text, /prompt is too long/, `${from} -> ${to}`)
      else if (from !== 'generate') t.match(thrown, { code: 'context_length_exceeded' }, `${from} -> ${to}`)
    }
    const other = to === 'chat' ? 'messages' : 'chat'
    const fits: JsonObject = other === 'chat'
      ? { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'fits' } }] }
      : { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text: 'fits' }], stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 1 } }
    const { gateway } = await startTranslating(t, {
      up: { speaks: to, responses: [{ status: 400, body }] }, longer: { speaks: other, responses: [{ body: fits }] },
    }, ', retries: 0, on: { context_length: { upstream: longer, model: big } }')
    const { choices } = await openaiClient(gateway).chat.completions.create({ model: 'm', messages })
    t.equal(choices[0]?.message.content, 'fits')
  })
}

const FAILED = { id: 'resp_1', object: 'response', model: 'm', status: 'failed', error: null, output: [], usage: null }
const SILENT: readonly (readonly [what: string, body: JsonObject | string])[] = [
  ['a body', FAILED],
  ['a body without the member', { ...FAILED, error: undefined }],
  ['a stream', `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', response: FAILED })}\n\n`],
]

for (const [what, body] of SILENT) {
  t.test(`${what} of a failed response without an error gives an error to each client`, async t => {
    for (const from of ['chat', 'messages', 'generate']) {
      const { gateway } = await startTranslating(t, { up: { speaks: 'responses', responses: [{ body }] } }, ', retries: 0')
      const thrown: unknown = await Promise.resolve(CLIENTS[from]!(gateway)).then(() => null, (reason: unknown) => reason)
      t.match(failed(thrown), { status: 502, text: /the response failed, and the upstream does not say why/ }, from)
    }
  })
}

t.test('after a failed response without an error, the next target gets the request, also without translation', async t => {
  const whole = { ...FAILED, status: 'completed', output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] }] }
  const { gateway } = await startTranslating(t, {
    a: { speaks: 'responses', responses: [{ body: FAILED }] }, b: { speaks: 'responses', responses: [{ body: whole }] },
  })
  t.equal((await openaiClient(gateway).responses.create({ model: 'm', input: 'Hi' })).output_text, 'Hi')
})
