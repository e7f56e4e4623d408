import { readFileSync } from 'node:fs'
import t from 'tap'
import { ERRORS, GatewayError, asGatewayError, causeOf } from '../../src/base/errors.ts'

t.test('docs/errors.md lists each error with its status, source, retryability and meaning', async t => {
  const docs = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  const rows = docs.split('\n').filter(line => line.startsWith('| `'))
  const expected = Object.entries(ERRORS).map(
    ([code, { status, source, retryable, about }]) =>
      `| \`${code}\` | ${status} | ${source} | ${retryable ? 'yes' : 'no'} | ${about} |`,
  )
  t.strictSame(rows, expected)
})

t.test('asGatewayError converts each thrown value to an error of the table', async t => {
  const known = new GatewayError('draining', 'x')
  t.equal(asGatewayError(known), known)
  const unknown = asGatewayError(new TypeError('secret detail'))
  t.equal(unknown.code, 'internal')
  t.equal(unknown.status, 500)
  t.notMatch(unknown.message, /secret/, 'the message of an unknown error is not sent to the client')
  t.match(unknown.cause, { message: 'secret detail' })
})

t.test('causeOf removes the parsed text from the message of a JSON error', async t => {
  const cause = thrownBy(() => JSON.parse('a secret'))
  t.match(cause, /a secret/)
  t.equal(causeOf(new GatewayError('upstream_invalid', 'x', { cause })), 'the text is not valid JSON')
  const stack = causeOf(asGatewayError(cause))
  t.notMatch(stack, /secret/)
  t.match(stack, /the text is not valid JSON\n +at JSON\.parse/)
})

function thrownBy(work: () => void): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  return null
}
