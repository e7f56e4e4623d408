import { ApiError, GoogleGenAI } from '@google/genai'
import { ApiError as ApiError2, GoogleGenAI as GoogleGenAI2 } from 'genai2'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { CUTS, NARROW_KEY, WRONG_KEY, drained, exchangesOf, rejection, startForClients } from './setup.ts'

const CLIENTS: [string, typeof GoogleGenAI, typeof ApiError][] = [
  ['@google/genai 3', GoogleGenAI, ApiError],
  // The calls below are the same in both majors; their types are not.
  ['@google/genai 2', GoogleGenAI2 as unknown as typeof GoogleGenAI, ApiError2 as unknown as typeof ApiError],
]

for (const [name, Client, Failure] of CLIENTS) {
  t.test(`${name} raises errors of its own class`, async t => {
    const gateway = await startForClients(t)
    const connect = (apiKey: string) => new Client({ apiKey, httpOptions: { baseUrl: gateway.url } }).models
    const models = connect(KEY)
    const ask = (model: string, contents = 'x', caller = models) =>
      caller.generateContent({ model, contents })
    const stream = (model: string) => models.generateContentStream({ model, contents: 'x' })
    // The error of the client has the body of the response as its message.
    const bodyOf = (error: unknown): unknown => JSON.parse((error as Error).message)

    t.test('an error of the upstream is an ApiError with the original body', async t => {
      const statuses = {
        400: 'INVALID_ARGUMENT', 404: 'NOT_FOUND', 429: 'RESOURCE_EXHAUSTED', 500: 'INTERNAL',
        503: 'UNAVAILABLE',
      }
      const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' }
      for (const [text, state] of Object.entries(statuses)) {
        const status = Number(text)
        for (const asked of [ask, stream]) {
          const error = await rejection(t, asked(`sim,status=${status},retry_after=7`), text)
          if (!t.ok(error instanceof Failure, `${text} is typed`)) continue
          t.match(error, { status })
          t.strictSame(bodyOf(error), {
            error: { code: status, message: `Simulated error ${status}.`, status: state, details: [info] },
          })
        }
      }
    })

    t.test('the client does not retry with a wrong key', async t => {
      let error: unknown
      const lines = await exchangesOf(gateway, async () => {
        error = await rejection(t, ask('sim', 'x', connect(WRONG_KEY)), 'wrong key')
      })
      t.ok(error instanceof Failure)
      t.match(error, { status: 401 })
      t.match(bodyOf(error), { error: { code: 401, status: 'UNAUTHENTICATED' } })
      t.match(lines, [{ status: 401, error: 'invalid_key' }])
      t.equal(lines.length, 1, 'exactly one request arrived')
    })

    t.test('if the upstream refuses the credential, the client gets 502', async t => {
      for (const status of [401, 403]) {
        const error = await rejection(t, ask(`sim,status=${status}`), 'refused')
        t.ok(error instanceof Failure)
        t.match(bodyOf(error), { error: { code: 502, status: 'INTERNAL' } })
      }
    })

    t.test('an error of the gateway is an ApiError with its status', async t => {
      const cases: [Promise<unknown>, number, string, string][] = [
        [ask('sim', 'x', connect(NARROW_KEY)), 403, 'PERMISSION_DENIED', 'MODEL_NOT_ALLOWED'],
        [ask('gemini-unknown'), 404, 'NOT_FOUND', 'MODEL_NOT_FOUND'],
        [ask('sim', 'x'.repeat(300_000)), 413, 'INVALID_ARGUMENT', 'BODY_TOO_LARGE'],
        [ask('slow,headers_delay=10m'), 504, 'DEADLINE_EXCEEDED', 'FIRST_BYTE_TIMEOUT'],
      ]
      for (const [asked, status, state, reason] of cases) {
        const error = await rejection(t, asked, reason)
        t.ok(error instanceof Failure)
        t.match(error, { status })
        t.match(bodyOf(error), { error: { code: status, status: state, details: [{ reason }] } })
      }
    })

    t.test('a stream that stalls ends with an ApiError of status 504', async t => {
      const error = await rejection(t, drained(stream('stall,stall_after=3')), 'stalled')
      t.ok(error instanceof Failure)
      t.match(error, { status: 504, message: /DEADLINE_EXCEEDED/ })
    })

    t.test('the client gets an error if a stream is cut', async t => {
      for (const cut of CUTS) {
        for (const upstream of ['sim', 'tcp']) {
          await t.rejects(drained(stream(`${upstream},${cut}`)), `${upstream}: ${cut}`)
        }
      }
    })

    t.test('an error event in a stream is an ApiError', async t => {
      const error = await rejection(t, drained(stream('tcp,error_event_after=3')), 'error event')
      t.ok(error instanceof Failure)
      t.match(error, { status: 503, message: /simulated model is overloaded/ })
    })

    t.test('the client gets an error if a body is cut', async t => {
      for (const cut of ['reset_after=3', 'close_after=3', 'wrong_length']) {
        for (const upstream of ['sim', 'tcp']) {
          await t.rejects(ask(`${upstream},${cut}`), `${upstream}: ${cut}`)
        }
      }
    })
  })
}
