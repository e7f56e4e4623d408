#!/usr/bin/env node
// Chooses what runs: this Node, or the checkout's pinned one when this is too
// old. Plain JavaScript in the syntax of Node 12, so that an old Node gets as
// far as the message below.

import module from 'module'

// An import would read all that these have, and node loads some of it for that.
const require = module.createRequire(import.meta.url)
const { existsSync, readdirSync, statSync } = require('fs')
const { dirname, join } = require('path')
const { fileURLToPath } = require('url')

const OLDEST = 24
const major = parseInt(process.versions.node, 10)
const RELAUNCHED = 'GATEWAY_RELAUNCHED'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const isRelaunched = process.env[RELAUNCHED] !== undefined
delete process.env[RELAUNCHED]

// Node would open a debugger, to which anybody on the machine may connect, and who sends this means to have
// the logs opened anew.
process.on('SIGUSR1', () => {})

if (major >= OLDEST) {
  if (isRelaunched) dieWithParent()
  run()
} else {
  const pinned = join(root, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (!isRelaunched && existsSync(pinned)) relaunch(pinned)
  else refuse()
}

function run() {
  // Everything that the gateway writes is for its user alone, also what libraries write for it.
  process.umask(0o077)
  // Node's own choice is under /tmp, where everybody may lay code in wait for a gateway that has keys.
  module.enableCompileCache(join(root, 'node_modules', '.cache', 'gateway'))
  import(runsSources() ? '../src/cli/main.ts' : '../dist/gateway/main.js')
}

/**
 * A package has its sources bundled. A checkout runs them as they are, whose types
 * Node strips, unless a bundle is there that is newer than all of them (npm ci
 * makes one): it starts in half the time and takes 45 MB less.
 */
function runsSources() {
  const sources = join(root, 'src')
  const built = join(root, 'dist', 'gateway', 'main.js')
  if (!existsSync(join(sources, 'cli', 'main.ts'))) return false
  if (!existsSync(built)) return true
  const time = statSync(built).mtimeMs
  const schema = join(root, 'gateway.schema.json')
  return isAnyNewer(sources, time) || (existsSync(schema) && isAnyNewer(schema, time))
}

/**
 * Was the file, or anything in the folder, changed after that? The console's pages are built apart.
 * Paths are put together by hand: so many calls of `join` wake V8's optimizing compiler, 5 MB of its pages.
 */
function isAnyNewer(path, time) {
  const stats = statSync(path)
  if (stats.mtimeMs > time) return true
  if (!stats.isDirectory()) return false
  return readdirSync(path).some(name => name !== 'web' && isAnyNewer(path + '/' + name, time))
}

function refuse() {
  const found = `${process.versions.node} (${process.execPath})`
  process.stderr.write(`gateway needs Node ${OLDEST} or newer; this is Node ${found}\n`)
  process.exitCode = 2
}

/** Runs the same command under another Node and does as it does. */
function relaunch(node) {
  const { spawn } = require('child_process')
  const { constants } = require('os')
  const child = spawn(node, process.argv.slice(1), {
    // Through the channel the child learns of the end of this process, however sudden.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    // A process group of its own: a signal to the whole group comes once, from here, not twice.
    detached: process.platform !== 'win32',
    env: Object.assign({}, process.env, { [RELAUNCHED]: '1' })
  })
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2']
  const forward = signal => { child.kill(signal) }
  for (const signal of signals) process.on(signal, forward)
  child.on('error', error => {
    process.exitCode = 1
    process.stderr.write(`gateway cannot run ${node}: ${error.message}\n`)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) {
      process.exit(code)
    } else {
      for (const name of signals) process.removeListener(name, forward)
      process.exitCode = 128 + constants.signals[signal] // should somebody else listen to it
      process.kill(process.pid, signal)
    }
  })
}

function dieWithParent() {
  const die = () => { process.kill(process.pid, 'SIGKILL') }
  if (!process.connected) die()
  process.once('disconnect', die)
  // The listener alone would keep the process alive.
  process.channel.unref()
}
