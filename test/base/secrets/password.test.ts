import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  DEFAULT_COST, PasswordHashError, formatPasswordHash, hashPassword, verifyPassword, parsePasswordHash,
} from '../../../src/base/secrets/password.ts'

const SALT = 'A'.repeat(22)
const HASH = 'B'.repeat(43)
const hashOf = (cost: string) => `scrypt:${cost}:${SALT}:${HASH}`

t.test('a password hash contains its parameters and verifies only the same password', async t => {
  const made = await hashPassword('correct horse', randomBytes)
  t.same(made.cost, DEFAULT_COST)
  t.same(parsePasswordHash(formatPasswordHash(made)), made)
  t.ok(await verifyPassword('correct horse', made))
  t.notOk(await verifyPassword('correct horses', made))
  t.match(formatPasswordHash(made), /^[\w:=-]+$/, 'a password hash needs no quotes in YAML')
})

t.test('composed and decomposed letters in a password are equal', async t => {
  const made = await hashPassword('p\u00e4ssword', randomBytes)
  t.ok(await verifyPassword('pa\u0308ssword', made))
})

t.test('a hash that is malformed, too cheap or too expensive is refused before a password is verified', async t => {
  for (const text of [
    '', 'scrypt:', 'hunter2', hashOf('N=16384:r=8'), hashOf('N=16384,r=8,p=1'), hashOf('N=16383:r=8:p=1'),
    hashOf('N=0:r=8:p=1'), hashOf('N=1:r=8:p=1'), hashOf('N=16384:r=0:p=1'), hashOf('N=16384:r=8:p=0'),
    hashOf('N=8192:r=8:p=1'), hashOf('N=16384:r=1:p=16'), hashOf('N=1073741824:r=8:p=1'),
    hashOf('N=16384:r=9999:p=1'),
    hashOf('N=16384:r=8:p=9999'), hashOf('N=99999999999:r=8:p=1'), `scrypt:N=16384:r=8:p=1:short:${HASH}`,
    `scrypt:N=16384:r=8:p=1:${SALT}:short`, `scrypt:N=16384:r=8:p=1:${SALT}:${'B'.repeat(200)}`,
    ` ${hashOf('N=16384:r=8:p=1')}`, `${hashOf('N=16384:r=8:p=1')}\n`,
  ]) {
    t.throws(() => parsePasswordHash(text), PasswordHashError, JSON.stringify(text))
  }
  t.doesNotThrow(() => parsePasswordHash(hashOf('N=16384:r=8:p=1')))
  t.doesNotThrow(() => parsePasswordHash(hashOf('N=131072:r=8:p=1')))
})

t.test('parsePasswordHash throws a PasswordHashError for each malformed hash', async () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.string().map(text => `scrypt:${text}`)), text => {
    try {
      parsePasswordHash(text)
    } catch (error) {
      return error instanceof PasswordHashError
    }
    return true
  }))
})
