// Run by npm before start, and as part of the build: builds what is missing or
// older than its sources (the gateway's bundle, the static pages of the console
// and of the documentation), or of that only the scripts that are named. The
// gateway starts without them too, so that a build that fails is told and no
// more, unless --strict says otherwise. Plain JavaScript for whatever Node npm
// itself runs on; the builds run with the pinned one, which npm puts first on
// PATH.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync, mkdirSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const STRICT = process.argv.includes('--strict')
const named = process.argv.slice(2).filter(argument => !argument.startsWith('--'))

/** What is built by which script, where it ends, and what it is made from. */
const PARTS = [
  {
    script: 'build:gateway',
    built: 'dist/gateway/main.js',
    sources: ['src', 'gateway.schema.json', 'rolldown.config.js', 'package-lock.json'],
  },
  {
    script: 'build:console',
    built: 'dist/console/web/index.html',
    sources: ['src/console/web', 'src/console/api', 'package-lock.json'],
  },
  {
    script: 'build:docs',
    built: 'dist/docs/index.html',
    sources: ['docs', 'bench/README.md', 'SECURITY.md', 'CHANGELOG.md', 'package-lock.json'],
  },
]

const STAMPS = join(root, 'dist', 'built.json')

const { scripts = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
for (const { script, built, sources } of PARTS) {
  if (named.length > 0 && !named.includes(script)) continue
  // An installed package brings what is built, and not what it is made from.
  if (scripts[script] === undefined || !existsSync(join(root, sources[0]))) continue
  const stamp = digest(sources)
  if (existsSync(join(root, built)) && stamps()[script] === stamp) {
    refresh(join(root, built))
    continue
  }
  process.stderr.write(`Building ${dirname(built)} (npm run ${script})\n`)
  const failure = build(script)
  if (failure === null) keep(script, stamp)
  else fail(script, failure)
}

/** By content it is new; by time too, which is what bin/gateway.js looks at. */
function refresh(file) {
  try {
    utimesSync(file, new Date(), new Date())
  } catch {
    // Somebody else's checkout: where the time says otherwise, the sources run, which do the same.
  }
}

/** One digest of the names and contents of all source files. */
function digest(sources) {
  const hash = createHash('sha256')
  for (const file of sources.flatMap(source => filesOf(join(root, source)))) {
    const content = readFileSync(file)
    hash.update(`${file.slice(root.length)}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

function filesOf(path) {
  if (!existsSync(path)) return []
  if (!statSync(path).isDirectory()) return [path]
  const names = readdirSync(path).filter(name => !['node_modules', 'dist', 'cache'].includes(name))
  return names.sort().flatMap(name => filesOf(join(path, name)))
}

function stamps() {
  try {
    return JSON.parse(readFileSync(STAMPS, 'utf8'))
  } catch {
    return {} // none yet, or not whole: everything is built
  }
}

function keep(script, stamp) {
  mkdirSync(dirname(STAMPS), { recursive: true })
  writeFileSync(STAMPS, `${JSON.stringify({ ...stamps(), [script]: stamp })}\n`)
}

/** @returns what the build said when it failed, or null */
function build(script) {
  const { npm_node_execpath: node = process.execPath, npm_execpath: npm } = process.env
  const args = ['run', '--silent', script]
  const shell = !npm && process.platform === 'win32' // npm is a script there
  const { status, error, stdout, stderr } = npm
    ? spawnSync(node, [npm, ...args], { cwd: root, encoding: 'utf8' })
    : spawnSync('npm', args, { cwd: root, encoding: 'utf8', shell })
  if (error) return error.message
  return status === 0 ? null : `${stdout}${stderr}`
}

function fail(script, text) {
  const consequence = STRICT ? '' : '; the gateway starts without'
  process.stderr.write(`${text.trimEnd()}\nnpm run ${script} failed${consequence}\n`)
  if (STRICT) process.exitCode = 1
}
