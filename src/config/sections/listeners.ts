import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { buildConsole } from './console.ts'
import type { Path } from '../text/document.ts'
import { formatPath, type Findings } from '../text/findings.ts'
import { addressesConflict, formatAddress, isAddressOrBlock, parseAddress } from '../listen-address.ts'
import { checkCertificates, checkKeyPair } from './pem.ts'
import type { RawConfig } from '../raw.ts'
import type { Address, Config, ServerConfig } from '../types.ts'
import { sizeOf, timerDurationOf } from './values.ts'

const DEFAULT_LISTEN: Address = { host: '127.0.0.1', port: 8080 }
const DEFAULT_BODY_LIMIT = 64 * 1024 * 1024
const DEFAULT_DRAIN = 30 * 60_000
/** Number of bodies of the maximum size that fit into the default memory limit. */
const DEFAULT_BODIES_IN_MEMORY = 8
const DEFAULT_IN_FLIGHT = 10_000
const DEFAULT_CONNECTIONS = 20_000
/** ms; more than the 600 s of Google Cloud: https://cloud.google.com/load-balancing/docs/https#timeouts_and_retries */
const DEFAULT_IDLE = 620_000

/** @param directory file names are relative to this directory */
export function buildListeners(
  raw: RawConfig, directory: string, findings: Findings,
): Pick<Config, 'server' | 'console' | 'docs'> & { readonly prometheus: Address | null } {
  const server = buildServer(raw.server ?? {}, directory, findings)
  const consoleListen = addressOf(raw.console?.listen, ['console', 'listen'], findings)
  const docsListen = addressOf(raw.docs?.listen, ['docs', 'listen'], findings)
  const prometheus = addressOf(raw.telemetry?.prometheus?.listen, ['telemetry', 'prometheus', 'listen'], findings)
  checkDistinct([
    { path: ['server', 'listen'], address: server.listen },
    { path: ['console', 'listen'], address: consoleListen },
    { path: ['docs', 'listen'], address: docsListen },
    { path: ['telemetry', 'prometheus', 'listen'], address: prometheus },
  ], findings)
  const console = consoleListen && buildConsole(raw, consoleListen, directory, findings)
  return { server, console, docs: docsListen && { listen: docsListen }, prometheus }
}

type RawServer = NonNullable<RawConfig['server']>

function buildServer(raw: RawServer, directory: string, findings: Findings): ServerConfig {
  const bodyLimit = sizeOf(raw.body_limit, ['server', 'body_limit'], DEFAULT_BODY_LIMIT, findings)
  const enough = DEFAULT_BODIES_IN_MEMORY * bodyLimit
  const bodyMemory = sizeOf(raw.body_memory, ['server', 'body_memory'], enough, findings)
  if (bodyMemory < bodyLimit) {
    const path = ['server', raw.body_memory === undefined ? 'body_limit' : 'body_memory']
    findings.error(path, 'server.body_memory must be at least server.body_limit, or bodies of that size are refused')
  }
  return {
    listen: addressOf(raw.listen, ['server', 'listen'], findings) ?? DEFAULT_LISTEN,
    reusePort: raw.reuse_port ?? false,
    workers: workersOf(raw, findings),
    tls: buildTls(raw.tls, directory, findings),
    bodyLimit, bodyMemory,
    maxInFlight: raw.max_in_flight ?? DEFAULT_IN_FLIGHT,
    maxConnections: raw.max_connections ?? DEFAULT_CONNECTIONS,
    idle: timerDurationOf(raw.idle, ['server', 'idle'], DEFAULT_IDLE, findings),
    hosts: (raw.hosts ?? []).flatMap(host => host?.toLowerCase() ?? []),
    revealUpstream: raw.reveal_upstream ?? false,
    trustedProxies: proxiesOf(raw.trusted_proxies ?? [], findings),
    drain: timerDurationOf(raw.drain, ['server', 'drain'], DEFAULT_DRAIN, findings, 0),
    drainDelay: timerDurationOf(raw.drain_delay, ['server', 'drain_delay'], 0, findings, 0),
  }
}

function workersOf({ workers = 1, reuse_port: sharesPort = false }: RawServer, findings: Findings): number {
  const count = workers === 'auto' ? availableParallelism() : workers
  if (count > 1 && sharesPort) {
    findings.error(['server', 'workers'], 'server.workers and server.reuse_port cannot be combined; remove one of them')
  }
  return count
}

function buildTls(raw: RawServer['tls'], directory: string, findings: Findings): ServerConfig['tls'] {
  if (raw?.cert === undefined || raw.key === undefined) return null
  const tls = { cert: resolve(directory, raw.cert), key: resolve(directory, raw.key) }
  const path = ['server', 'tls']
  checkCertificates(tls.cert, [...path, 'cert'], findings)
  checkKeyPair(tls.cert, tls.key, [...path, 'key'], findings)
  return tls
}

function proxiesOf(raw: readonly (string | undefined)[], findings: Findings): string[] {
  raw.forEach((block, index) => {
    if (block === undefined || isAddressOrBlock(block)) return
    findings.error(['server', 'trusted_proxies', index], 'this is neither an IP address nor a CIDR block such as 10.0.0.0/8')
  })
  return raw.filter(block => block !== undefined)
}

function addressOf(text: string | number | undefined, path: Path, findings: Findings): Address | null {
  return text === undefined ? null : findings.parsed(path, () => parseAddress(text))
}

function checkDistinct(listeners: readonly { readonly path: Path, readonly address: Address | null }[], findings: Findings): void {
  listeners.forEach(({ path, address }, index) => {
    if (address === null) return
    const other = listeners.slice(0, index).find(before => before.address && addressesConflict(before.address, address))
    if (!other) return
    const both = `${formatPath(path)} and ${formatPath(other.path)} are both on ${formatAddress(address)}`
    findings.error(findings.has(path) ? path : other.path, `${both}; give each a port of its own`)
  })
}
