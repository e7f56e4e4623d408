import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Question, Report } from './probe.ts'
import { BODY_MEMORY_MB, configuration } from './targets.ts'

/** Megabytes that bodies may take: one that is changed is there twice. */
const BODIES_MB = 2 * BODY_MEMORY_MB
/** Megabytes of heap beside them: the gateway itself, and garbage. */
const HEAP_CONSTANT_MB = 224
/** Bytes of the whole process, with V8's own, its code and buffers outside of the heap. */
export const MAX_MEMORY = (BODIES_MB + 600) * 2 ** 20
/** Bytes that are in use when nothing runs, after a collection of garbage. */
export const MAX_AT_REST = 128 * 2 ** 20

/** Errors for the operator, of what upstreams did. */
const EXPECTED = /refused the gateway's own credential/

const PROBE = new URL('./probe.ts', import.meta.url).href
/** The sources, not what is built of them: the probe looks into one of their modules. */
const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** The gateway in a process of its own, with a heap that is no larger than its bound. */
export class GatewayProcess {
  readonly url: string
  readonly ledger: string
  readonly #child: ChildProcess
  readonly #stderr: string[]
  readonly #errors: string[]

  private constructor(url: string, ledger: string, child: ChildProcess, stderr: string[], errors: string[]) {
    this.url = url
    this.ledger = ledger
    this.#child = child
    this.#stderr = stderr
    this.#errors = errors
  }

  /** @param directory a new one, for its file and its ledger. @param upstreams their URL */
  static async start(directory: string, upstreams: string): Promise<GatewayProcess> {
    const file = join(directory, 'gateway.yaml')
    const ledger = join(directory, 'gateway.db')
    writeFileSync(file, configuration(upstreams, ledger))
    const child = fork(MAIN, ['serve', '--config', file], {
      execArgv: [`--max-old-space-size=${HEAP_CONSTANT_MB + BODIES_MB}`, '--expose-gc', '--import', PROBE], stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { PATH: process.env['PATH'], AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret', AWS_EC2_METADATA_DISABLED: 'true', AWS_CONFIG_FILE: '/none', AWS_SHARED_CREDENTIALS_FILE: '/none' },
    })
    const stderr: string[] = []
    const errors: string[] = []
    child.stderr?.on('data', (chunk: Buffer) => void stderr.push(chunk.toString()))
    const listening = Promise.withResolvers<string>()
    child.once('exit', code => listening.reject(new Error(`the gateway ended with ${code}: ${stderr.join('').slice(-2000)}`)))
    if (child.stdout !== null) {
      createInterface(child.stdout).on('line', line => {
        const { msg, base, level, ...rest } = JSON.parse(line) as { msg: string, base?: string, level: string }
        if (msg === 'listening' && base !== undefined) listening.resolve(base)
        else if ((level === 'error' || level === 'fatal') && !EXPECTED.test(msg)) errors.push(`${msg} ${JSON.stringify(rest).slice(0, 1500)}`)
      })
    }
    return new GatewayProcess(await listening.promise, ledger, child, stderr, errors)
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Why it ended, as far as it said. */
  get lastWords(): string {
    return this.#stderr.join('').slice(-1500)
  }

  /** Lines of the log of level error since the call before. */
  takeErrors(): string[] {
    return this.#errors.splice(0)
  }

  /** @param question `collect`: collects garbage before. @returns null = it has ended */
  async report(question: Exclude<Question, 'control'> = 'report'): Promise<Report | null> {
    return await this.#ask(question) as Report | null
  }

  /** @returns milliseconds of CPU time that a fixed work takes; null = it has ended */
  async control(): Promise<number | null> {
    return await this.#ask('control') as number | null
  }

  async stop(): Promise<void> {
    if (!this.isAlive) return
    this.#child.kill('SIGKILL')
    await once(this.#child, 'exit')
  }

  async #ask(question: Question): Promise<unknown> {
    if (!this.isAlive) return null
    const ended = new AbortController()
    const end = (): void => ended.abort()
    this.#child.once('exit', end)
    try {
      const reply = once(this.#child, 'message', { signal: ended.signal })
      // If it has ended meanwhile, its exit says so.
      this.#child.send(question, () => {})
      return (await reply)[0] as unknown
    } catch {
      return null
    } finally {
      this.#child.off('exit', end)
    }
  }
}
