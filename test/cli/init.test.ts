import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { ROOT, gateway } from './command.ts'

/** Where the first line of a configuration says that the schema is. */
function schemaOf(file: string): string {
  const reference = /^# yaml-language-server: \$schema=(\S+)\n/.exec(readFileSync(file, 'utf8'))?.[1] ?? ''
  return reference.startsWith('file:') ? fileURLToPath(reference) : resolve(file, '..', reference)
}

t.test('init writes a copy of the example that passes gateway check and names an existing schema file', async t => {
  const cwd = t.testdir({})
  const { code, stdout } = await gateway(['init'], { cwd })
  t.match({ code, stdout }, { code: 0, stdout: /^Wrote gateway\.yaml\. Next: gateway serve/ })
  const [written, example] = [cwd, ROOT].map(directory => {
    const text = readFileSync(join(directory, 'gateway.yaml'), 'utf8')
    return text.slice(text.indexOf('\n'))
  })
  t.equal(written, example)
  t.ok(existsSync(schemaOf(join(cwd, 'gateway.yaml'))))
  t.match(await gateway(['check'], { cwd }), { code: 0 })
})

t.test('--config selects the file to write', async t => {
  const cwd = t.testdir({ sub: {} })
  t.match(await gateway(['init', '--config', 'sub/my.yaml'], { cwd }), { code: 0 })
  t.ok(existsSync(join(cwd, 'sub', 'my.yaml')))
})

t.test('init does not overwrite a file, and does not create the target of a symbolic link', async t => {
  const cwd = t.testdir({ 'gateway.yaml': 'mine', 'other.yaml': t.fixture('symlink', 'gone.yaml') })
  t.match(await gateway(['init'], { cwd }), { code: 2, stdout: '', stderr: /exists already/ })
  t.equal(readFileSync(join(cwd, 'gateway.yaml'), 'utf8'), 'mine')
  t.match(await gateway(['init', '-c', 'other.yaml'], { cwd }), { code: 2 })
  t.notOk(existsSync(join(cwd, 'gone.yaml')), 'the target of the link is not created')
})

t.test('a missing directory is an error', async t => {
  const ended = await gateway(['init', '-c', 'no/where.yaml'], { cwd: t.testdir({}) })
  t.match(ended, { code: 2, stderr: /directory does not exist/ })
})

t.test('the example names the schema by a relative path if the gateway is installed in a subdirectory', async t => {
  const cwd = t.testdir({ tools: { node_modules: t.fixture('symlink', join(ROOT, 'node_modules')) } })
  for (const name of ['bin', 'src', 'package.json', 'gateway.yaml', 'gateway.schema.json']) {
    cpSync(join(ROOT, name), join(cwd, 'tools', name), { recursive: true })
  }
  const script = join(cwd, 'tools', 'bin', 'gateway.js')
  t.match(await gateway(['init'], { cwd, script }), { code: 0, stderr: '' })
  const [first] = readFileSync(join(cwd, 'gateway.yaml'), 'utf8').split('\n')
  t.equal(first, '# yaml-language-server: $schema=./tools/gateway.schema.json')
})
