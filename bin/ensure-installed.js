// Run by npm before start and test, so that each works as one command on a fresh
// clone: installs the dependencies when they are missing or not those of the
// lock file. Plain JavaScript for whatever Node npm itself runs on.

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

if (!isInstalled()) process.exitCode = install()

function isInstalled() {
  const wanted = packagesOf(join(root, 'package-lock.json'))
  if (wanted === null) return true // not a checkout: nothing to compare with
  const present = packagesOf(join(root, 'node_modules', '.package-lock.json'))
  if (present === null) return false
  return Object.entries(wanted).every(([path, { version, integrity, optional }]) => {
    if (path === '') return true // the project itself
    const found = present[path]
    // Packages for other platforms are optional and rightly absent.
    return found ? found.version === version && found.integrity === integrity : optional === true
  })
}

/** What a lock file names, by path; null without a lock file. */
function packagesOf(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : null
}

function install() {
  // The Node that runs npm, not one inside the node_modules that npm is about to replace.
  const { npm_node_execpath: node = process.execPath, npm_execpath: npm } = process.env
  const [command, args] = npm ? [node, [npm, 'ci']] : ['npm', ['ci']]
  process.stderr.write('Installing the dependencies (npm ci)\n')
  const shell = !npm && process.platform === 'win32' // npm is a script there
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['inherit', 2, 2], shell })
  if (error) process.stderr.write(`npm cannot be run: ${error.message}\n`)
  return status ?? 1
}
