import Anthropic from '@anthropic-ai/sdk'
import type { APIError } from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic0'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { CUTS, NARROW_KEY, WRONG_KEY, drained, exchangesOf, rejection, startForClients } from './setup.ts'

const CLIENTS: [string, typeof Anthropic][] = [
  ['@anthropic-ai/sdk 1', Anthropic],
  // The calls below are the same in both majors; their types are not.
  ['@anthropic-ai/sdk 0.137', Anthropic0 as unknown as typeof Anthropic],
]

for (const [name, Client] of CLIENTS) {
  t.test(`${name} raises errors of its own classes`, async t => {
    const gateway = await startForClients(t)
    const connect = (apiKey: string, maxRetries = 0) =>
      new Client({ baseURL: gateway.url, apiKey, maxRetries })
    const client = connect(KEY)
    const asked = (model: string, content = 'x') =>
      ({ model, max_tokens: 100, messages: [{ role: 'user' as const, content }] })
    const ask = (client: Anthropic, model: string, content = 'x') =>
      client.messages.create(asked(model, content))

    t.test('an error of the upstream has the class of its status, and the original body', async t => {
      const classes = {
        400: Client.BadRequestError, 404: Client.NotFoundError, 409: Client.ConflictError,
        422: Client.UnprocessableEntityError, 429: Client.RateLimitError, 500: Client.InternalServerError,
        503: Client.InternalServerError, 529: Client.InternalServerError,
      }
      const types: Record<number, string> = {
        404: 'not_found_error', 429: 'rate_limit_error', 503: 'overloaded_error', 529: 'overloaded_error',
      }
      for (const [text, type] of Object.entries(classes)) {
        const status = Number(text)
        const error = await rejection(t, ask(client, `sim,status=${status},retry_after=7`), text)
        if (!t.ok(error instanceof type, `${text} is typed`)) continue
        const { error: body, headers, requestID } = error as APIError
        const kind = types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
        const inner = { type: kind, message: `Simulated error ${status}.` }
        t.strictSame(body, { type: 'error', error: inner, request_id: requestID })
        t.equal(headers?.get('retry-after'), '7')
        t.match(requestID, /^req_/)
        t.match(headers?.get('x-gateway-request-id'), /^[\da-f-]{36}$/)
      }
    })

    t.test('the client does not retry with a wrong key', async t => {
      for (const stream of [false, true]) {
        let error: unknown
        const lines = await exchangesOf(gateway, async () => {
          const answer = connect(WRONG_KEY, 2).messages.create({ ...asked('sim'), stream })
          error = await rejection(t, answer, 'wrong key')
        })
        t.ok(error instanceof Client.AuthenticationError)
        t.match(error, { error: { type: 'error', error: { type: 'authentication_error' } } })
        t.match(lines, [{ status: 401, error: 'invalid_key' }])
        t.equal(lines.length, 1, 'exactly one request arrived')
      }
    })

    t.test('if the upstream refuses the credential, the client gets 502 and does not retry', async t => {
      for (const status of [401, 403]) {
        let error: unknown
        const lines = await exchangesOf(gateway, async () => {
          error = await rejection(t, ask(connect(KEY, 2), `sim,status=${status}`), 'refused')
        })
        t.ok(error instanceof Client.InternalServerError)
        t.match(error, { status: 502, error: { error: { type: 'api_error' } }, requestID: /^[\da-f-]{36}$/ })
        t.equal(lines.length, 1)
      }
    })

    t.test('an error of the gateway has the class of its status', async t => {
      const forbidden = await rejection(t, ask(connect(NARROW_KEY), 'sim'), '403')
      t.ok(forbidden instanceof Client.PermissionDeniedError)
      t.match(forbidden, { error: { error: { type: 'permission_error' } } })
      const unknown = await rejection(t, ask(client, 'claude-unknown'), '404')
      t.ok(unknown instanceof Client.NotFoundError)
      t.match(unknown, { error: { error: { type: 'not_found_error', message: /claude-unknown/ } } })
      const nameless = await rejection(t, ask(client, ''), '400')
      t.ok(nameless instanceof Client.BadRequestError)
      t.match(nameless, { error: { error: { type: 'invalid_request_error' } } })
      const large = await rejection(t, ask(client, 'sim', 'x'.repeat(300_000)), '413')
      t.ok(large instanceof Client.APIError)
      t.match(large, { status: 413, error: { error: { type: 'request_too_large' } } })
      for (const error of [forbidden, unknown, nameless, large] as APIError[]) {
        const id = error.headers?.get('x-gateway-request-id')
        t.match(error.error, { type: 'error', request_id: id })
        t.match(error.requestID, /^[\da-f-]{36}$/)
        t.equal(error.requestID, id)
      }
    })

    t.test('a timeout is an API error, also in mid-stream', async t => {
      const late = await rejection(t, ask(client, 'slow,headers_delay=10m'), 'no response')
      t.ok(late instanceof Client.InternalServerError)
      t.match(late, { status: 504, requestID: /^[\da-f-]{36}$/, error: { error: { type: 'timeout_error' } } })
      const quiet = client.messages.stream(asked('stall,stall_after=3')).finalMessage()
      const stalled = await rejection(t, quiet, 'half a response')
      t.ok(stalled instanceof Client.APIError)
      t.match(stalled, { error: { error: { type: 'timeout_error' } } })
    })

    t.test('the client retries an overloaded upstream after the retry delay', async t => {
      const lines = await exchangesOf(gateway, async () => {
        const answer = await ask(connect(KEY, 1), 'sim,status=529,retry_after_ms=1,first=1')
        t.equal(answer.type, 'message')
      })
      t.strictSame(lines.map(line => line.status), [529, 200])
    })

    t.test('the client gets an error if a stream is cut', async t => {
      for (const cut of CUTS) {
        for (const upstream of ['sim', 'tcp']) {
          const model = `${upstream},${cut}`
          await t.rejects(drained(client.messages.create({ ...asked(model), stream: true })), model)
          await t.rejects(client.messages.stream(asked(model)).finalMessage(), model)
          await t.rejects(drained(client.beta.messages.create({ ...asked(model), stream: true })), model)
        }
      }
    })

    t.test('an error event in a stream is an API error', async t => {
      const streaming = { ...asked('tcp,error_event_after=3'), stream: true as const }
      const error = await rejection(t, drained(client.messages.create(streaming)), 'error event')
      t.ok(error instanceof Client.APIError)
      t.match(error, { error: { type: 'error', error: { type: 'overloaded_error' } } })
    })

    t.test('the client gets an error if a body is cut', async t => {
      for (const cut of ['reset_after=3', 'close_after=3', 'wrong_length']) {
        for (const upstream of ['sim', 'tcp']) {
          await t.rejects(ask(client, `${upstream},${cut}`), `${upstream}: ${cut}`)
        }
      }
    })
  })
}
