import fc from 'fast-check'
import t from 'tap'
import { addressesConflict, formatAddress, isAddressOrBlock, parseAddress } from '../../src/config/listen-address.ts'

t.test('parseAddress parses each form of an address', async t => {
  for (const [text, host, port] of [
    ['127.0.0.1:8080', '127.0.0.1', 8080], ['localhost:0', 'localhost', 0], ['[::1]:8080', '::1', 8080],
    ['[fe80::1%eth0]:80', 'fe80::1%eth0', 80], [':8080', '', 8080], ['8080', '', 8080], [8080, '', 8080],
    ['gateway_1.example.com:65535', 'gateway_1.example.com', 65535],
  ] as const) t.strictSame(parseAddress(text), { host, port }, String(text))
  t.strictSame(parseAddress('fd:3'), { host: '', port: 0, fd: 3 })
  t.equal(formatAddress(parseAddress('fd:17')), 'fd:17')
})

t.test('the error about a malformed address has the reason', async t => {
  for (const [text, reason] of [
    ['localhost', /port is missing/], ['', /port is missing/], ['host:', /port is missing/],
    ['host:http', /port is missing/], ['127.0.0.1:65536', /at most 65535/], ['::1', /brackets/],
    ['::1:8080', /brackets/], ['[::1]', /port is missing/], ['[::z]:80', /not hold an IPv6/],
    ['127.0.0:80', /neither an IP address/], ['256.1.1.1:80', /neither an IP address/],
    ['http://localhost:80', /no scheme/], ['https://localhost', /no scheme/], ['a b:80', /neither an IP address/],
    ['-x:80', /neither an IP address/],
    ['host:80\n', /port is missing/], ['fd:2', /standard input/], ['fd:', /port is missing/],
    ['fd:x', /port is missing/],
  ] as const) {
    t.throws(() => parseAddress(text), { name: 'RangeError', message: reason }, JSON.stringify(text))
  }
})

t.test('a formatted address is parsed to the same address', async () => {
  const host = fc.oneof(fc.ipV4(), fc.ipV6().filter(text => !text.includes('.')), fc.domain())
  fc.assert(fc.property(host, fc.integer({ min: 0, max: 65535 }), (host, port) => {
    const again = parseAddress(formatAddress({ host, port }))
    return again.host === host && again.port === port
  }))
  fc.assert(fc.property(fc.string(), text => {
    try {
      return parseAddress(text).port <= 65535
    } catch (error) {
      return error instanceof RangeError
    }
  }))
})

t.test('two listeners with the same port conflict if both use the same interface or one of them uses all interfaces', async t => {
  const at = parseAddress
  t.ok(addressesConflict(at('127.0.0.1:80'), at('127.0.0.1:80')))
  t.ok(addressesConflict(at(':80'), at('127.0.0.1:80')))
  t.ok(addressesConflict(at('127.0.0.1:80'), at('0.0.0.0:80')))
  t.ok(addressesConflict(at('[::]:80'), at('[::1]:80')))
  t.notOk(addressesConflict(at('127.0.0.1:80'), at('127.0.0.2:80')))
  t.notOk(addressesConflict(at('127.0.0.1:80'), at('127.0.0.1:81')))
  t.notOk(addressesConflict(at(':0'), at(':0')), 'each listener with port 0 gets another port')
  t.ok(addressesConflict(at('fd:3'), at('fd:3')))
  t.notOk(addressesConflict(at('fd:3'), at('fd:4')))
  t.notOk(addressesConflict(at('fd:3'), at(':80')))
})

t.test('trusted proxies are addresses or CIDR blocks', async t => {
  for (const text of ['10.0.0.7', '10.0.0.0/8', '0.0.0.0/0', '::1', 'fd00::/8', '::/128']) {
    t.ok(isAddressOrBlock(text), text)
  }
  for (const text of [
    '', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0/8', 'proxy.local', '10.0.0.0/-1',
    'fe80::1%eth0', '/8',
  ]) t.notOk(isAddressOrBlock(text), text)
})
