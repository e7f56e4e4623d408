import t from 'tap'
import { GatewayError } from '../../../src/base/errors.ts'
import { GENERATE_FORMAT, INTERACTION_FORMAT, statusName } from '../../../src/protocols/generate/errors.ts'

const card = (name: string) => ({ name, context: null, output: null })

for (const [status, expected] of [
  [400, 'INVALID_ARGUMENT'], [401, 'UNAUTHENTICATED'], [402, 'RESOURCE_EXHAUSTED'], [403, 'PERMISSION_DENIED'], [404, 'NOT_FOUND'], [408, 'DEADLINE_EXCEEDED'], [413, 'INVALID_ARGUMENT'], [429, 'RESOURCE_EXHAUSTED'],
  [499, 'INVALID_ARGUMENT'], [500, 'INTERNAL'], [502, 'INTERNAL'], [503, 'UNAVAILABLE'], [504, 'DEADLINE_EXCEEDED'], [529, 'UNAVAILABLE'],
] as const) {
  t.test(`the status ${status} is ${expected} to Google's clients`, async t => t.equal(statusName(status), expected))
}

const ERROR = new GatewayError('draining', 'the gateway "ends"')
const OBJECT = {
  error: { code: 503, message: 'the gateway "ends"', status: 'UNAVAILABLE', details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'DRAINING', domain: 'model-gateway' }] },
}

t.test('an error has the shape of google.rpc.Status, in a body and in a stream', async t => {
  t.strictSame(JSON.parse(GENERATE_FORMAT.errorBody(ERROR, 'req_1')), OBJECT)
  const event = GENERATE_FORMAT.streamError(ERROR, 'req_1')
  t.match(event, /^data: \{.*\}\n\n$/)
  t.strictSame(JSON.parse(event.slice('data: '.length)), OBJECT)
})

t.test('an interaction that fails ends with an event of type error', async t => {
  t.equal(INTERACTION_FORMAT.streamError(ERROR, 'req_1'), `event: error\ndata: ${JSON.stringify({ event_type: 'error', error: { code: 'draining', message: 'the gateway "ends"' } })}\n\n`)
  t.equal(INTERACTION_FORMAT.errorBody(ERROR, 'req_1'), GENERATE_FORMAT.errorBody(ERROR, 'req_1'))
})

t.test('names of models have the prefix models/', async t => {
  t.match(JSON.parse(GENERATE_FORMAT.modelList(['a', 'b'].map(card))), { models: [{ name: 'models/a', baseModelId: 'a' }, { name: 'models/b', displayName: 'b' }] })
  t.match(JSON.parse(GENERATE_FORMAT.modelCard(card('a'))), { name: 'models/a' })
  t.strictSame(JSON.parse(GENERATE_FORMAT.modelList([])), { models: [] })
})
