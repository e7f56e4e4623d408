import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { UnreadableError, readText, rereadText } from '../../../src/config/text/read.ts'

const TEXTS: readonly (readonly [what: string, bytes: Buffer, expected: string])[] = [
  ['nothing', Buffer.alloc(0), ''],
  ['a byte order mark', Buffer.from('\ufeffa: 1'), 'a: 1'],
  ['any script', Buffer.from('a: é研\u{1f600}'), 'a: é研\u{1f600}'],
  ['the replacement character', Buffer.from('a: \ufffd'), 'a: \ufffd'],
  ['more than one read', Buffer.from('x'.repeat(600_000)), 'x'.repeat(600_000)],
  ['a character at the end of a read', Buffer.from(`${'x'.repeat(262_143)}é`), `${'x'.repeat(262_143)}é`],
]

for (const [what, bytes, expected] of TEXTS) {
  t.test(`a file of ${what} is read`, async t => {
    const file = join(t.testdir(), 'f')
    writeFileSync(file, bytes)
    t.equal(readText(file) === expected, true)
    t.equal(rereadText(file) === expected, true)
  })
}

t.test('an error about a byte that is not UTF-8 has the place of that byte', async t => {
  const file = join(t.testdir(), 'f')
  writeFileSync(file, Buffer.from([0x61, 0x3a, 0x20, 0xc3, 0x28]))
  t.throws(() => readText(file), { name: 'UnreadableError', message: 'this is not in UTF-8; save the file as UTF-8', code: null, place: { text: 'a: \ufffd(', offset: 3 } })
})

for (const [what, bytes] of [['little', [0xff, 0xfe, 0x61, 0]], ['big', [0xfe, 0xff, 0, 0x61]]] as const) {
  t.test(`a file in UTF-16 is refused, ${what}-endian`, async t => {
    const file = join(t.testdir(), 'f')
    writeFileSync(file, Buffer.from(bytes))
    t.throws(() => readText(file), { message: 'the file is in UTF-16; save it as UTF-8', place: null })
  })
}

t.test('an unreadable file is reported with the reason', async t => {
  const folder = t.testdir({ f: 'a' })
  mkdirSync(join(folder, 'd'))
  symlinkSync('loop', join(folder, 'loop'))
  const reasonOf = (name: string) => {
    try {
      readText(join(folder, name))
      return null
    } catch (error) {
      return error instanceof UnreadableError ? [error.message, error.code] : error
    }
  }
  t.strictSame(reasonOf('missing'), ['no such file', 'ENOENT'])
  t.strictSame(reasonOf('f/g'), ['no such file: a part of the path is not a directory', 'ENOTDIR'])
  t.strictSame(reasonOf('d'), ['this is a directory, not a file', 'EISDIR'])
  t.strictSame(reasonOf('loop'), ['too many symbolic links lead to this file', 'ELOOP'])
  t.strictSame(reasonOf('x'.repeat(300)), ['the file name is too long', 'ENAMETOOLONG'])
  if (process.getuid?.() === 0) return
  chmodSync(join(folder, 'f'), 0)
  t.strictSame(reasonOf('f'), ['the file may not be read by this user', 'EACCES'])
})

t.test('/dev/null can be read at the start and not at a reload', async t => {
  t.equal(readText('/dev/null'), '')
  t.throws(() => rereadText('/dev/null'), { message: /which can be read only once; name a file$/ })
  t.throws(() => rereadText(t.testdir()), { message: 'this is a directory, not a file' })
})

t.test('an endless file is refused', { skip: process.platform !== 'linux' }, async t => {
  t.throws(() => readText('/dev/zero'), { message: 'the file is larger than 64 MB, which no configuration is' })
})
