import t from 'tap'
import { messageOf } from '../../src/base/message-of.ts'

t.test('messageOf returns a message for each thrown value', async t => {
  t.equal(messageOf(new Error('it broke')), 'it broke')
  t.equal(messageOf('it broke'), 'it broke')
  t.equal(messageOf(new AggregateError([new Error('no IPv6'), new Error('no IPv4')])), 'no IPv6, no IPv4')
  t.equal(messageOf(new AggregateError([new Error('one')], 'all failed')), 'all failed')
  t.equal(messageOf(new Error('unknown issuer; if the root CA is installed locally, try running Node.js with --use-system-ca')), 'unknown issuer')
})
