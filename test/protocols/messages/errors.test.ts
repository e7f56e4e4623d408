import t from 'tap'
import { GatewayError } from '../../../src/base/errors.ts'
import { MESSAGES_FORMAT } from '../../../src/protocols/messages/errors.ts'
import { requestBetween } from '../../support/translation.ts'

t.test('a thread is refused with the message that makes SDKs send the whole conversation', async t => {
  let refusal: unknown
  try {
    requestBetween('messages', 'chat', { thread: { type: 'create' }, messages: [{ role: 'user', content: 'Hi' }] })
  } catch (error) {
    refusal = error
  }
  t.match(JSON.parse(MESSAGES_FORMAT.errorBody(refusal as GatewayError, 'request-1')), {
    error: { type: 'invalid_request_error', message: /^thread: /, details: { error_code: 'thread_unsupported_request' } },
  })
  const other = new GatewayError('not_translatable', 'container: it is at one provider', { param: 'container' })
  t.equal(JSON.parse(MESSAGES_FORMAT.errorBody(other, 'request-1')).error.details, undefined)
})
