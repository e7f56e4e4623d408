import t from 'tap'
import { refusalReason } from '../../../src/protocols/endpoint/refusal-reason.ts'
import { clientSide, upstreamSide } from '../../support/translation.ts'

/*
 * Servers write errors in many shapes. The reason reaches the client, whatever protocol it speaks.
 */

const LONG = "This model's maximum context length is 8192 tokens"
const SHAPES: readonly (readonly [what: string, body: unknown])[] = [
  ['an object', { error: { message: LONG } }],
  ['a list of errors', [{ error: { code: 400, message: LONG, status: 'INVALID_ARGUMENT' } }]],
  ['a text as the error', { error: LONG }],
  ['a text as the detail', { detail: LONG }],
  ['a list as the detail', { detail: [{ type: 'value_error', loc: ['body', 'messages'], msg: LONG, input: 'x' }] }],
  ['an error in the detail', { detail: { error: { message: LONG } } }],
  ['a message with a list of details', { object: 'error', message: { detail: [{ loc: ['body'], msg: LONG }] }, type: 'invalid_request_error' }],
  ['the error of another provider', { error: { message: 'Provider returned error', code: 400, metadata: { raw: JSON.stringify({ error: { message: LONG } }), provider_name: 'P' } } }],
  ['the text of another provider', { error: { message: 'Provider returned error', metadata: { raw: LONG } } }],
  ['a message at the top', { message: LONG }],
  ['the error of a choice', { choices: [{ error: { code: 400, message: LONG } }] }],
  ['a code in a base_resp', { base_resp: { status_code: 1039, status_msg: LONG } }],
  ['a plain text', LONG],
]

for (const [what, body] of SHAPES) {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  t.test(`${what}: the error counts as context_length`, async t => t.equal(refusalReason(bytes), 'context_length'))
  for (const upstream of ['chat', 'responses', 'messages', 'generate', 'converse']) {
    t.test(`${what}: the message of ${upstream} is kept for every client`, async t => {
      const error = upstreamSide(upstream).readError(400, body)
      for (const client of ['chat', 'messages', 'responses', 'generate']) {
        t.match(clientSide(client).writeError(error, 'request-1'), { error: { message: new RegExp(LONG) } })
      }
    })
  }
}

t.test('the message names each invalid field', async t => {
  const body = { detail: [{ loc: ['body', 'max_tokens'], msg: 'Extra inputs are not permitted' }, { loc: ['body', 'user'], msg: 'Field required' }] }
  t.equal(upstreamSide('chat').readError(422, body).message, 'body.max_tokens: Extra inputs are not permitted; body.user: Field required')
})

for (const page of ['<html><title>502 Bad Gateway</title></html>', '', '   ']) {
  t.test(`the body ${JSON.stringify(page)} has no message, so the status is reported`, async t => {
    t.equal(upstreamSide('chat').readError(502, page).message, 'the upstream responded with the status 502')
  })
}

t.test('a circular error has no message, so the status is reported', async t => {
  const error: Record<string, unknown> = {}
  error['message'] = error
  t.equal(upstreamSide('chat').readError(400, { error }).message, 'the upstream responded with the status 400')
})
