import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { descriptorOf } from '../../support/descriptor.ts'
import { freePort } from '../../support/free-port.ts'

const GATEWAY = fileURLToPath(new URL('../../../bin/gateway.js', import.meta.url))

/** A command in a separate process, and its log. */
export class Service {
  readonly child: ChildProcess
  readonly lines: Record<string, unknown>[] = []
  /** Resolves with the exit code; null after a signal. */
  readonly ended: Promise<number | null>
  #over = false
  #waiting: (() => void)[] = []

  /** @param socket becomes descriptor 3 of the process */
  constructor(args: readonly string[], socket?: Server) {
    const inherited = socket ? [descriptorOf(socket)] : []
    this.child = spawn(process.execPath, [GATEWAY, ...args], {
      stdio: ['ignore', 'pipe', 'inherit', ...inherited],
    })
    createInterface(this.child.stdout as Readable).on('line', line => {
      this.lines.push(JSON.parse(line) as Record<string, unknown>)
      this.#wake()
    })
    this.ended = once(this.child, 'close').then(([code]) => {
      this.#over = true
      this.#wake()
      return code as number | null
    })
  }

  /** Resolves with the first log line from index `from` on with this message. */
  async logged(message: string, from = 0): Promise<Record<string, unknown>> {
    for (;;) {
      const line = this.lines.slice(from).find(({ msg }) => msg === message)
      if (line) return line
      if (this.#over) throw new Error(`ended without "${message}": ${JSON.stringify(this.lines.slice(-3))}`)
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
  }

  async listening(): Promise<string> {
    return String((await this.logged('listening'))['base'])
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

export const KEY = 'sk-soak-0123456789abcdef'

/** Successive gateways on one address, with one simulator. */
export class Succession {
  readonly folder: string
  readonly #simulator: Service
  readonly #upstream: string
  readonly #listen: string
  readonly #socket: Server | undefined
  #current: Service
  readonly #before: Service[] = []
  #changes = 0

  private constructor(folder: string, simulator: Service, upstream: string, listen: string, socket?: Server) {
    this.folder = folder
    this.#simulator = simulator
    this.#upstream = upstream
    this.#listen = listen
    this.#socket = socket
    this.#change()
    this.#current = this.#spawn()
  }

  /**
   * @param socket a listening socket that all gateways inherit; without it each gateway listens on a shared port
   */
  static async start(folder: string, socket?: Server): Promise<Succession> {
    const simulator = new Service(['simulate', '--listen', '127.0.0.1:0'])
    const upstream = await simulator.listening()
    const listen = socket ? 'fd:3' : `127.0.0.1:${await freePort()}`
    const succession = new Succession(folder, simulator, upstream, listen, socket)
    await succession.#current.listening()
    return succession
  }

  get base(): Promise<string> {
    return this.#current.listening()
  }

  get current(): Service {
    return this.#current
  }

  /** Changes the file, sends SIGHUP, and resolves when the new configuration is active. */
  async reload(): Promise<void> {
    const from = this.#current.lines.length
    this.#change()
    this.#current.child.kill('SIGHUP')
    await this.#current.logged('configuration reloaded', from)
  }

  /** Starts a successor, and sends SIGTERM to the previous gateway, which may drain for a while. */
  async restart(): Promise<void> {
    const successor = this.#spawn()
    await successor.listening()
    const old = this.#current
    this.#current = successor
    this.#before.push(old)
    old.child.kill('SIGTERM')
    await old.logged('draining')
  }

  /** Resolves after all previous gateways have ended. @returns the number of them that cut a request or failed */
  async predecessors(): Promise<number> {
    const codes = await Promise.all(this.#before.map(({ ended }) => ended))
    return codes.filter(code => code !== 0).length
  }

  /** @returns the exit code of the last gateway */
  async stop(): Promise<number | null> {
    this.#current.child.kill('SIGTERM')
    const code = await this.#current.ended
    this.#simulator.child.kill('SIGTERM')
    await this.#simulator.ended
    return code
  }

  kill(): void {
    for (const { child } of [this.#simulator, this.#current, ...this.#before]) child.kill('SIGKILL')
  }

  #spawn(): Service {
    return new Service(['serve', '--config', join(this.folder, 'gateway.yaml')], this.#socket)
  }

  /** Writes another configuration each time: adds and removes routes, upstreams, keys, limits and timeouts. */
  #change(): void {
    const n = this.#changes++
    writeFileSync(join(this.folder, 'gateway.yaml'), `
server: { listen: "${this.#listen}", reuse_port: ${this.#socket === undefined}, drain: 60s }
upstreams:
  sim: { url: "${this.#upstream}${n % 3 === 0 ? '' : '/'}" }
  other${n}: { url: "http://127.0.0.1:9", headers: { x-change: "${n}" } }
routes:
  - { model: other${n}, to: other${n} }
  - { path: /v1/*, to: sim, timeouts: { first_byte: ${20 + (n % 5)}s } }
timeouts: { connect: ${5 + (n % 2)}s, total: ${60 + n}s }
models: { "sim*": { price: { input: 0, output: 0 } } }
keys:
  - { name: soak, key: ${KEY}, limits: { requests_per_minute: ${1_000_000 + n}, concurrent: ${1_000 + n} } }
  - { name: other${n}, key: sk-other-${n}-0123456789abcdef }
ledger: { file: gateway.db }
log: { level: ${n % 2 === 0 ? 'info' : 'debug'} }
`)
  }
}
