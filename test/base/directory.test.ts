import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeDirectory } from '../../src/base/directory.ts'

t.test('what is missing above is made too, and what is there stays', async t => {
  const path = join(t.testdir(), 'a', 'b', 'c')
  makeDirectory(path)
  t.ok(statSync(path).isDirectory())
  makeDirectory(path)
  makeDirectory('/')
})

t.test('a file in the way is reported', async t => {
  const file = join(t.testdir(), 'file')
  writeFileSync(file, '')
  t.throws(() => makeDirectory(file), { code: 'EEXIST' })
  t.throws(() => makeDirectory(join(file, 'below')), { code: 'ENOTDIR' })
})

t.test('where the system makes no directories it says so at once', { skip: !existsSync('/proc/self') }, async t => {
  t.throws(() => makeDirectory('/proc/nothing/here'), { code: 'ENOENT' })
})
