import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeDirectory } from '../../../src/base/files/directory.ts'

t.test('makeDirectory creates missing parent directories and accepts existing directories', async t => {
  const path = join(t.testdir(), 'a', 'b', 'c')
  makeDirectory(path)
  t.ok(statSync(path).isDirectory())
  makeDirectory(path)
  makeDirectory('/')
})

t.test('a file in place of a directory is reported', async t => {
  const file = join(t.testdir(), 'file')
  writeFileSync(file, '')
  t.throws(() => makeDirectory(file), { code: 'EEXIST' })
  t.throws(() => makeDirectory(join(file, 'below')), { code: 'ENOTDIR' })
})

t.test('makeDirectory reports a file system that cannot create directories', { skip: !existsSync('/proc/self') }, async t => {
  t.throws(() => makeDirectory('/proc/nothing/here'), { code: 'ENOENT' })
})
