import OpenAI from 'openai'
import type { APIError } from 'openai'
import OpenAI6 from 'openai6'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { CUTS, NARROW_KEY, WRONG_KEY, drained, exchangesOf, rejection, startForClients } from './setup.ts'

const CLIENTS: [string, typeof OpenAI][] = [
  ['openai 7', OpenAI],
  // The calls below are the same in both majors; their types are not.
  ['openai 6', OpenAI6 as unknown as typeof OpenAI],
]
const MESSAGES = [{ role: 'user' as const, content: '12345678' }]

for (const [name, Client] of CLIENTS) {
  t.test(`${name} raises errors of its own classes`, async t => {
    const gateway = await startForClients(t)
    const connect = (apiKey: string, maxRetries = 0) =>
      new Client({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries })
    const client = connect(KEY)
    const ask = (client: OpenAI, model: string, content = 'x') =>
      client.chat.completions.create({ model, messages: [{ role: 'user', content }] })

    t.test('an error of the upstream has the class of its status, and the original body', async t => {
      const classes = {
        400: Client.BadRequestError, 404: Client.NotFoundError, 409: Client.ConflictError,
        422: Client.UnprocessableEntityError, 429: Client.RateLimitError, 500: Client.InternalServerError,
        503: Client.InternalServerError, 529: Client.InternalServerError,
      }
      const types: Record<number, string> = { 429: 'rate_limit_error' }
      const codes: Record<number, string> = { 404: 'model_not_found', 429: 'rate_limit_exceeded' }
      for (const [text, type] of Object.entries(classes)) {
        const status = Number(text)
        const model = `sim,status=${status},retry_after=7`
        const error = await rejection(t, ask(client, model), text)
        if (!t.ok(error instanceof type, `${text} is typed`)) continue
        const { error: body, headers, requestID } = error as APIError
        t.strictSame(body, {
          message: `Simulated error ${status}.`,
          type: types[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error'),
          param: null,
          code: codes[status] ?? null,
        })
        t.equal(headers?.get('retry-after'), '7')
        t.match(requestID, /^req_/)
        t.match(headers?.get('x-gateway-request-id'), /^[\da-f-]{36}$/)
      }
    })

    t.test('the client does not retry with a wrong key', async t => {
      for (const stream of [false, true]) {
        let error: unknown
        const lines = await exchangesOf(gateway, async () => {
          const { completions } = connect(WRONG_KEY, 2).chat
          const asked = completions.create({ model: 'sim', messages: MESSAGES, stream })
          error = await rejection(t, asked, 'wrong key')
        })
        t.ok(error instanceof Client.AuthenticationError)
        t.match(error, { code: 'invalid_api_key', type: 'invalid_request_error' })
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
        t.match(error, { status: 502, code: 'upstream_rejected_key', requestID: /^[\da-f-]{36}$/ })
        t.equal(lines.length, 1)
      }
    })

    t.test('an error of the gateway has the class of its status', async t => {
      const forbidden = await rejection(t, ask(connect(NARROW_KEY), 'sim'), '403')
      t.ok(forbidden instanceof Client.PermissionDeniedError)
      t.match(forbidden, { type: 'permission_error', code: 'model_not_allowed', param: 'model' })
      const unknown = await rejection(t, ask(client, 'gpt-unknown'), '404')
      t.ok(unknown instanceof Client.NotFoundError)
      t.match(unknown, { type: 'invalid_request_error', code: 'model_not_found', param: 'model' })
      const nameless = await rejection(t, ask(client, ''), '400')
      t.ok(nameless instanceof Client.BadRequestError)
      t.match(nameless, { code: 'model_required', param: 'model' })
      const large = await rejection(t, ask(client, 'sim', 'x'.repeat(300_000)), '413')
      t.ok(large instanceof Client.APIError)
      t.match(large, { status: 413, type: 'invalid_request_error', code: 'body_too_large' })
      for (const error of [forbidden, unknown, nameless, large]) {
        const { headers, requestID } = error as APIError
        t.match(requestID, /^[\da-f-]{36}$/)
        t.equal(requestID, headers?.get('x-gateway-request-id'))
      }
    })

    t.test('a timeout is an API error, also in mid-stream', async t => {
      const late = await rejection(t, ask(client, 'slow,headers_delay=10m'), 'no response')
      t.ok(late instanceof Client.InternalServerError)
      t.match(late, { status: 504, type: 'server_error', code: 'first_byte_timeout', requestID: /^[\da-f-]{36}$/ })
      const asked = { model: 'stall,stall_after=3', messages: MESSAGES, stream: true as const }
      const stalled = await rejection(t, drained(client.chat.completions.create(asked)), 'half a response')
      t.ok(stalled instanceof Client.APIError)
      t.match(stalled, { type: 'server_error', code: 'idle_timeout' })
    })

    t.test('the client retries an overloaded upstream after the retry delay', async t => {
      const model = `sim,status=429,retry_after_ms=1,first=1`
      const lines = await exchangesOf(gateway, async () => {
        t.match((await ask(connect(KEY, 1), model)).choices[0]?.message.content, /^w1 /)
      })
      t.strictSame(lines.map(line => line.status), [429, 200])
    })

    const streams: Record<string, (model: string) => PromiseLike<AsyncIterable<unknown>>> = {
      'chat completions': model =>
        client.chat.completions.create({ model, messages: MESSAGES, stream: true }),
      'completions': model => client.completions.create({ model, prompt: 'x', stream: true }),
      'responses': model => client.responses.create({ model, input: 'x', stream: true }),
      'images': model => client.images.generate({ model, prompt: 'x', stream: true, partial_images: 3 }),
      'transcriptions': model =>
        client.audio.transcriptions.create({ model, file: new File(['x'], 'a.mp3'), stream: true }),
    }
    for (const [kind, open] of Object.entries(streams)) {
      t.test(`the client gets an error if a stream of ${kind} is cut`, async t => {
        for (const cut of CUTS) {
          for (const upstream of ['sim', 'tcp']) {
            // A chat stream is complete after its finish_reason; the gateway adds [DONE].
            if (cut === 'no_terminator' && kind.includes('completions')) await t.resolves(drained(open(`${upstream},${cut}`)), `${upstream}: ${cut}`)
            else await t.rejects(drained(open(`${upstream},${cut}`)), `${upstream}: ${cut}`)
          }
        }
      })

      t.test(`an error event in a stream of ${kind} reaches the application`, async t => {
        const reading = drained(open('tcp,error_event_after=2'))
        if (kind === 'responses' && Client !== OpenAI) {
          // The older client returns the error event as an event.
          t.match((await reading).at(-1), { type: 'error', message: /simulated model is overloaded/ })
          return
        }
        const error = await rejection(t, reading, kind)
        t.ok(error instanceof Client.APIError)
        t.match(error, { message: /simulated model is overloaded/ })
      })
    }

    t.test('the client gets an error if a body is cut', async t => {
      for (const cut of ['reset_after=3', 'close_after=3', 'wrong_length']) {
        for (const upstream of ['sim', 'tcp']) {
          await t.rejects(ask(client, `${upstream},${cut}`), `${upstream}: ${cut}`)
        }
      }
      const asked = { model: 'tcp,close_after=3', input: 'x', voice: 'alloy' }
      const speech = await client.audio.speech.create(asked)
      await t.rejects(speech.arrayBuffer())
    })
  })
}
