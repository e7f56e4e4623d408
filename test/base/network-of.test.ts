import t from 'tap'
import { networkOf } from '../../src/base/network-of.ts'

t.test('the network of an IPv6 address is its first 64 bits, and of an IPv4 address the whole address', async t => {
  t.equal(networkOf('192.0.2.1'), '192.0.2.1')
  t.equal(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2')
  t.equal(networkOf('2001:db8::6'), '2001:db8:0:0')
  t.equal(networkOf('::1'), '0:0:0:0')
  t.equal(networkOf('2001:db8:1:2::'), '2001:db8:1:2')
})
