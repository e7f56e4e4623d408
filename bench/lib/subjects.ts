import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { gatewayYaml } from './gateway-yaml.ts'
import type { GatewayYaml } from './gateway-yaml.ts'

/** Something between the load and the upstream, in a process of its own. */
export interface Subject {
  readonly name: string
  readonly port: number
  /** The process whose CPU is counted; null for none. */
  readonly pid: number | null
  stop(): void
}

export interface StartedGateway extends Subject {
  /** The console's port; 0 = it has none. */
  readonly console: number
  /** The file that its standard output goes to. */
  readonly log: string
}

const root = join(import.meta.dirname, '..', '..')
// What users get is the bundle: sources that are newer than it run as they are, slower to start and larger.
execFileSync(process.execPath, [join(root, 'bin/ensure-built.js'), '--strict', 'build:gateway'])

/** What is left to do when the run ends. */
const atExit: (() => void)[] = []
process.once('exit', () => {
  for (const finish of atExit) finish()
})

/** Starts a script of this folder that prints its port. */
export async function startScript(name: string, file: string, ...args: string[]): Promise<Subject> {
  const child = spawn(process.execPath, [join(import.meta.dirname, file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  stopAtExit(child)
  return subject(name, Number(await firstLine(child.stdout)), child)
}

export interface GatewayOptions extends GatewayYaml {
  readonly name?: string
  /** Arguments of node, before the script. */
  readonly nodeArgs?: readonly string[]
}

/** The gateway as an operator runs it. */
export function startGateway(upstreamPort: number, options: GatewayOptions = {}): Promise<StartedGateway> {
  return startConfigured(gatewayYaml(upstreamPort, options), options)
}

/** Starts a gateway with that configuration. */
export async function startConfigured(
  yaml: string, options: Pick<GatewayOptions, 'name' | 'nodeArgs'> = {},
): Promise<StartedGateway> {
  const dir = temporaryDirectory('gateway-bench-')
  const file = join(dir, 'gateway.yaml')
  writeFileSync(file, yaml)
  // The log goes to a file; its first line tells the port.
  const log = join(dir, 'log')
  const out = openSync(log, 'w')
  const args = [...options.nodeArgs ?? [], join(root, 'bin/gateway.js'), 'serve', '--config', file]
  const child = spawn(process.execPath, args, { stdio: ['ignore', out, 'inherit'] })
  stopAtExit(child)
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the gateway ended with code ${child.exitCode}`)
    const [base, management] = ['base', 'console'].map(listener =>
      new RegExp(`"${listener}":"http://127\\.0\\.0\\.1:(\\d+)"`).exec(readFileSync(log, 'utf8'))?.[1])
    if (base !== undefined) {
      return {
        ...subject(options.name ?? 'this gateway', Number(base), child),
        console: Number(management ?? 0), log,
      }
    }
    await pause(10)
  }
}

/** Seconds of CPU, user and system, that a process has used so far. */
export function cpuSeconds(pid: number): number {
  // After the name in brackets; fields 14 and 15 of proc(5), in ticks of 1/100 s.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** us of CPU that a process takes for each unit of a load. */
export async function cpuPerUnit(pid: number | null, run: () => Promise<{ readonly units: number }>): Promise<number> {
  const before = cpuSeconds(pid as number)
  const { units } = await run()
  return ((cpuSeconds(pid as number) - before) * 1e6) / units
}

/** Megabytes of memory of a process: now (`VmRSS`), or the most so far (`VmHWM`). */
export function memory(pid: number, which: 'VmRSS' | 'VmHWM'): number {
  return Number(
    new RegExp(`${which}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
  ) / 1024
}

export function subject(name: string, port: number, child: ChildProcess): Subject {
  return { name, port, pid: child.pid ?? null, stop: () => child.kill() }
}

/** A child must not outlive a run that failed. */
export function stopAtExit(child: ChildProcess): void {
  atExit.push(() => child.kill())
}

/** A new directory that goes with the run. */
export function temporaryDirectory(prefix: string): string {
  const dir = mkdtempSync(join(tmpdir(), prefix))
  atExit.push(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

async function firstLine(stream: Readable): Promise<string> {
  for await (const line of createInterface(stream)) return line
  throw new Error('the process ended before it said its port')
}
