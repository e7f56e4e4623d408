import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { FileWatch } from '../../../src/base/files/file-watch.ts'

/** A FileWatch; `next` resolves with the text of the file after the next change. */
function watching(t: Test, files: readonly string[]) {
  const told: string[] = []
  let wake = () => {}
  let seen = 0
  const watch = new FileWatch(files, () => {
    const [file = ''] = files
    try {
      told.push(readFileSync(file, 'utf8'))
    } catch {
      told.push('gone')
    }
    wake()
  })
  t.teardown(() => watch.close())
  const keepAlive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(keepAlive))
  return {
    watch,
    told,
    next: async () => {
      if (told.length === seen) await new Promise<void>(resolve => (wake = resolve))
      return told[seen++]
    },
  }
}

t.test('each write, replacement, removal and creation of a watched file is reported once', async t => {
  const file = join(t.testdir({ 'gateway.yaml': 'one' }), 'gateway.yaml')
  const { next, told } = watching(t, [file])
  writeFileSync(file, 'two')
  t.equal(await next(), 'two')
  writeFileSync(`${file}.new`, 'three')
  renameSync(`${file}.new`, file)
  t.equal(await next(), 'three')
  rmSync(file)
  t.equal(await next(), 'gone')
  writeFileSync(file, 'four')
  t.equal(await next(), 'four')
  t.equal(told.length, 4)
})

t.test('a change of a Kubernetes config map is reported', async t => {
  const folder = t.testdir({ first: { 'gateway.yaml': 'one' }, second: { 'gateway.yaml': 'two' } })
  symlinkSync('first', join(folder, '..data'))
  symlinkSync('..data/gateway.yaml', join(folder, 'gateway.yaml'))
  const { next } = watching(t, [join(folder, 'gateway.yaml')])
  symlinkSync('second', join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  t.equal(await next(), 'two')
})

t.test('a change of the target of a watched link is reported, even in another directory', async t => {
  const folder = t.testdir({ here: {}, there: { 'gateway.yaml': 'one' } })
  symlinkSync('../there/gateway.yaml', join(folder, 'here', 'gateway.yaml'))
  const { next } = watching(t, [join(folder, 'here', 'gateway.yaml')])
  writeFileSync(join(folder, 'there', 'gateway.yaml'), 'two')
  t.equal(await next(), 'two')
})

t.test('writes to other files in the directory are not reported and do not delay the report of a watched file', async t => {
  const folder = t.testdir({ 'gateway.yaml': 'one', db: '' })
  const { next, told } = watching(t, [join(folder, 'gateway.yaml')])
  const busy = setInterval(() => writeFileSync(join(folder, 'db'), String(Math.random())), 10)
  t.teardown(() => clearInterval(busy))
  writeFileSync(join(folder, 'gateway.yaml'), 'two')
  t.equal(await next(), 'two')
  clearInterval(busy)
  t.equal(told.length, 1)
})

t.test('files can be added to the watch and removed from it', async t => {
  const folder = t.testdir({ 'gateway.yaml': 'one', tls: { 'cert.pem': 'a' }, 'ca.pem': 'b' })
  const file = join(folder, 'gateway.yaml')
  const { next, watch, told } = watching(t, [file])
  watch.watch([file, join(folder, 'tls', 'cert.pem')])
  writeFileSync(join(folder, 'tls', 'cert.pem'), 'changed')
  t.equal(await next(), 'one')
  // A change that is not reported yet is reported after the files are set again.
  writeFileSync(file, 'two')
  watch.watch([file])
  t.equal(await next(), 'two')
  mkdirSync(join(folder, 'elsewhere'))
  t.equal(told.length, 2)
})
