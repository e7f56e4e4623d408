import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { generateKey, isWellFormed } from '../../../src/base/secrets/key-format.ts'

t.test('a key has the prefix, 32 random digits and the checksum', async t => {
  const key = generateKey(size => Buffer.alloc(size))
  // The CRC-32 is 0xbf4f74dc by the zlib of Python.
  t.equal(key, `mgw_${'0'.repeat(32)}3VDO1M`)
  t.match(generateKey(randomBytes), /^mgw_[0-9A-Za-z]{38}$/)
  t.not(generateKey(randomBytes), generateKey(randomBytes))
})

t.test('generateKey skips random bytes that would make some digits more likely', async t => {
  const bytes = [255, 248, 247, 0, 61, 62]
  const key = generateKey(size => Buffer.from(Array.from({ length: size }, (_, i) => bytes[i % bytes.length]!)))
  t.match(key, /^mgw_z0z0z0z0/)
})

t.test('every generated key is well formed', async t => {
  t.doesNotThrow(() => fc.assert(fc.property(fc.uint8Array({ minLength: 64, maxLength: 64 }), bytes => {
    let at = 0
    return isWellFormed(
      generateKey(size => Buffer.from(Array.from({ length: size }, () => (bytes[at++ % 64]! + at) % 256))),
    )
  })))
})

t.test('a key with one wrong, missing or extra character is not well formed', async t => {
  const key = generateKey(randomBytes)
  for (let at = 0; at < key.length; at++) {
    const other = key[at] === 'x' ? 'y' : 'x'
    t.notOk(isWellFormed(key.slice(0, at) + other + key.slice(at + 1)), `at ${at}`)
  }
  for (
    const text of ['', key.slice(1), key.slice(0, -1), `${key}0`, ` ${key}`, `${key}\n`, key.toLowerCase()]
  ) {
    t.notOk(isWellFormed(text), JSON.stringify(text))
  }
})
