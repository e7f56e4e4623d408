import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const GATEWAY = fileURLToPath(new URL('../../bin/gateway.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

interface Surroundings {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly node?: string
  /** Flags of node, not of the command. */
  readonly flags?: readonly string[]
  /** The limit of open files of the process. */
  readonly descriptors?: number
  /** Another copy of bin/gateway.js. */
  readonly script?: string
}

/** Runs the command in a new process, whose environment has only PATH and `env`. */
export async function gateway(args: readonly string[], surroundings: Surroundings = {}): Promise<Ended> {
  const child = start(args, surroundings)
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const [[stdout, stderr], [code, signal]] = await Promise.all([output, once(child, 'close')])
  return { code, signal, stdout, stderr }
}

function start(args: readonly string[], surroundings: Surroundings) {
  const { cwd = ROOT, env = {}, node = process.execPath, flags = [], script = GATEWAY, descriptors } = surroundings
  // `env -i` removes the variables that the test runner adds to each process.
  const variables = Object.entries({ PATH: process.env['PATH'], ...env })
    .map(([name, value]) => `${name}=${value}`)
  const command = ['env', '-i', ...variables, node, ...flags, script, ...args]
  const limited = descriptors === undefined ? 'exec "$@"' : `ulimit -n ${descriptors}; exec "$@"`
  return spawn('sh', ['-c', limited, 'sh', ...command], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}

export interface Running {
  readonly child: ChildProcess
  /** The base address in the log line `listening`. */
  readonly base: string
  /** All log lines so far. */
  readonly lines: readonly Record<string, unknown>[]
  /** Resolves with the first line, past or future, with this message. */
  logged(message: string): Promise<Record<string, unknown>>
  readonly ended: Promise<Omit<Ended, 'stdout'>>
}

/** Starts a command that listens, and waits until it does. It is killed, with its workers, when the test ends. */
export async function listening(
  t: Test, args: readonly string[], surroundings: Surroundings = {},
): Promise<Running> {
  const child = start(args, surroundings)
  const lines: Record<string, unknown>[] = []
  const waiting = new Set<() => void>()
  createInterface(child.stdout).on('line', line => {
    lines.push(JSON.parse(line) as Record<string, unknown>)
    for (const look of waiting) look()
  })
  const stderr = text(child.stderr)
  const ended = Promise.all([stderr, once(child, 'close')])
    .then(([stderr, [code, signal]]) => ({ stderr, code, signal }) as Omit<Ended, 'stdout'>)
  t.teardown(() => {
    child.kill('SIGKILL')
    // `ended` resolves after the workers have closed their output, so they write no more files.
    return ended
  })
  const logged = (message: string): Promise<Record<string, unknown>> => {
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
    const look = (): void => {
      const line = lines.find(({ msg }) => msg === message)
      if (line) resolve(line)
    }
    waiting.add(look)
    look()
    void ended.then(({ stderr }) => reject(new Error(`ended without "${message}": ${stderr}`)))
    return promise
  }
  const { base } = await logged('listening')
  return { child, base: String(base), lines, logged, ended }
}
