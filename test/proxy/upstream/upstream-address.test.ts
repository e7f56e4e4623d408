import t from 'tap'
import { withoutCredential } from '../../../src/proxy/upstream/upstream-address.ts'

t.test('the key parameter is removed from an address in any spelling', async t => {
  const rows = [
    ['https://up.example/a?key=s', 'https://up.example/a'],
    ['https://up.example/a?key=s&b=1#c', 'https://up.example/a?b=1#c'],
    ['https://up.example/a?b=%20&key=s#c', 'https://up.example/a?b=%20#c'],
    // Other spellings of the same parameter name.
    ['https://up.example/a?%6bey=s&b=1', 'https://up.example/a?b=1'],
    ['https://up.example/a?b=1&ke%79=s&%6Be%79=s', 'https://up.example/a?b=1'],
    // Other parameters are kept.
    ['https://up.example/key=s?monkey=a&keys=b', 'https://up.example/key=s?monkey=a&keys=b'],
  ] as const
  for (const [address, told] of rows) t.equal(withoutCredential(address), told, address)
})
