import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeDirectory } from '../../../src/base/files/directory.ts'

t.test('missing parent directories are made, and existing ones stay', async t => {
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

t.test('a file system that cannot make directories is reported at once', { skip: !existsSync('/proc/self') }, async t => {
  t.throws(() => makeDirectory('/proc/nothing/here'), { code: 'ENOENT' })
})
