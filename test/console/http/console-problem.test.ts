import t from 'tap'
import { ConsoleProblem, codeOf } from '../../../src/console/http/console-problem.ts'

for (const [code, status] of [
  ['bad_request', 400], ['not_logged_in', 401], ['forbidden', 403], ['not_found', 404], ['conflict', 409], ['too_many', 429], ['unavailable', 503], ['internal', 500],
] as const) {
  t.test(`a problem with the code ${code} has the status ${status}`, async t => {
    t.equal(new ConsoleProblem(code, 'm').status, status)
    t.equal(codeOf(status), code)
  })
}

for (const [status, code] of [[413, 'bad_request'], [415, 'bad_request'], [499, 'bad_request'], [501, 'internal'], [599, 'internal']] as const) {
  t.test(`the status ${status} has the code ${code}`, async t => t.equal(codeOf(status), code))
}

t.test('a problem can name the invalid member of the request', async t => {
  t.strictSame(new ConsoleProblem('bad_request', 'm', { field: 'name' }).body, { code: 'bad_request', message: 'm', field: 'name' })
  const plain = new ConsoleProblem('too_many', 'm', { retryAfter: 5 })
  t.strictSame(plain.body, { code: 'too_many', message: 'm' })
  t.strictSame([plain.retryAfter, plain.field, plain.name], [5, null, 'ConsoleProblem'])
  t.equal(new ConsoleProblem('internal', 'm').retryAfter, null)
})
