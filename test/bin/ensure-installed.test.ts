import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { ROOT } from '../cli/command.ts'

type Packages = Record<string, { version?: string, integrity?: string, optional?: boolean }>

const LOCKED: Packages = {
  '': { version: '1.0.0' },
  'node_modules/one': { version: '1.0.0', integrity: 'sha512-one' },
  'node_modules/two': { version: '2.0.0', integrity: 'sha512-two' },
  'node_modules/for-another-platform': { version: '3.0.0', integrity: 'sha512-three', optional: true },
}
const { '': _, 'node_modules/for-another-platform': __, ...INSTALLED } = LOCKED

interface Outcome {
  /** Directory and arguments of the npm call; null = npm was not called. */
  readonly npm: string | null
  readonly code: number | null
  readonly stdout: string
}

/** Runs the script in a project with these lock files. In place of npm runs a script that writes its arguments to a file. */
function ensure(t: Test, locked: Packages | null, installed: Packages | null, npmCode = 0): Outcome {
  const lockFile = (packages: Packages): string => JSON.stringify({ lockfileVersion: 3, packages })
  const cwd = t.testdir({
    'package.json': '{ "type": "module" }',
    ...locked && { 'package-lock.json': lockFile(locked) },
    ...installed && { node_modules: { '.package-lock.json': lockFile(installed) } },
  })
  cpSync(join(ROOT, 'bin'), join(cwd, 'bin'), { recursive: true })
  const npm = join(cwd, 'npm.mjs')
  const note = join(cwd, 'called')
  writeFileSync(npm, `import { writeFileSync } from 'node:fs'
writeFileSync(${JSON.stringify(note)}, process.cwd() + ' ' + process.argv.slice(2).join(' '))
console.log('added 2 packages')
process.exit(${npmCode})
`)
  const { status, stdout } = spawnSync(process.execPath, [join(cwd, 'bin', 'ensure-installed.js')], {
    cwd: ROOT, encoding: 'utf8', env: { npm_execpath: npm, npm_node_execpath: process.execPath },
  })
  const called = existsSync(note) ? readFileSync(note, 'utf8').replace(cwd, '.') : null
  return { npm: called, code: status, stdout }
}

t.test('ensure-installed runs npm ci in a fresh clone, and prints nothing to standard output', async t => {
  t.strictSame(ensure(t, LOCKED, null), { npm: '. ci', code: 0, stdout: '' })
})

t.test('ensure-installed does not run npm if only packages for other platforms are missing', async t => {
  t.strictSame(ensure(t, LOCKED, INSTALLED), { npm: null, code: 0, stdout: '' })
})

t.test('ensure-installed runs npm ci if the lock file has changed', async t => {
  for (const version of ['1.0.1', '1.0.0']) {
    const moved = { ...LOCKED, 'node_modules/one': { version, integrity: 'sha512-new' } }
    t.match(ensure(t, moved, INSTALLED), { npm: '. ci' }, version)
  }
  t.match(ensure(t, { ...LOCKED, 'node_modules/new': { version: '1.0.0' } }, INSTALLED), { npm: '. ci' })
})

t.test('ensure-installed fails with the exit code of npm', async t => {
  t.match(ensure(t, LOCKED, null, 7), { npm: '. ci', code: 7 })
})

t.test('ensure-installed does not run npm without a lock file', async t => {
  t.match(ensure(t, null, null), { npm: null, code: 0 })
})
