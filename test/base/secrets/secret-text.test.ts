import t from 'tap'
import { secretText } from '../../../src/base/secrets/secret-text.ts'

t.test('a byte order mark before a secret and white space around a secret are removed', async t => {
  for (const [title, bytes, secret] of [
    ['plain', Buffer.from('sk-1\n'), 'sk-1'],
    ['UTF-8', Buffer.from('\uFEFFsk-1\r\n'), 'sk-1'],
    ['UTF-8, only a mark', Buffer.from('\uFEFF'), ''],
    ['UTF-16, little endian', Buffer.from('\uFEFFsk-1\r\n', 'utf16le'), 'sk-1'],
    ['UTF-16, big endian', Buffer.from('\uFEFFsk-1\n', 'utf16le').swap16(), 'sk-1'],
    ['UTF-16, big endian, half a character', Buffer.concat([Buffer.from('\uFEFFsk-1', 'utf16le').swap16(), Buffer.from([0])]), 'sk-1'],
    ['a mark inside', Buffer.from('sk\uFEFF-1'), Buffer.from('sk\uFEFF-1').toString('latin1')],
    ['bytes of UTF-8 stay', Buffer.from('pä'), Buffer.from('pä').toString('latin1')],
    ['empty', Buffer.alloc(0), ''],
    ['space', Buffer.from(' \n'), ''],
  ] as const) {
    t.equal(secretText(bytes), secret, title)
  }
})
