import t from 'tap'
import { seal, unseal } from '../../../src/base/secrets/seal.ts'

const KEY = Buffer.alloc(32, 'k')

t.test('a sealed text can be opened only with its key and only if it is unchanged', async t => {
  for (const text of ['', 'text', 'ä€😀'.repeat(100)]) t.equal(unseal(KEY, seal(KEY, text)), text)
  const sealed = seal(KEY, 'text')
  t.notMatch(sealed, Buffer.from('text').toString('base64url'))
  t.not(sealed, seal(KEY, 'text'))
  t.equal(unseal(Buffer.alloc(32, 'other'), sealed), null)
  const bytes = Buffer.from(sealed, 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] as number) ^ 1
    t.equal(unseal(KEY, changed.toString('base64url')), null)
  }
  for (const text of ['', 'AAAA', sealed.slice(0, -2)]) t.equal(unseal(KEY, text), null)
})
