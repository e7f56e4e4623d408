import * as http from 'node:http'
import * as https from 'node:https'
import type { Command } from 'commander'
import { messageOf } from '../base/message-of.ts'
import { loadConfig } from '../config/load/load.ts'
import { addressUrl } from '../config/listen-address.ts'
import { controlPath, type ProcessStatus } from '../gateway/control.ts'
import { askGateway, ledgerFileOf } from './common/ask-gateway.ts'
import { EXIT } from '../process/exit.ts'

/** ms after the start of the process. The rest of a second remains for the exit. */
const DEADLINE_MS = 900
/** Minimum ms to wait for the response: on a busy machine, the start can take longer than the deadline. */
const MIN_TIMEOUT_MS = 200

/** Ends the command with exit code 1 and the reason, unless a gateway with this configuration accepts requests. */
export async function requireReady(file: string, command: Command): Promise<void> {
  const timeoutMs = Math.max(MIN_TIMEOUT_MS, DEADLINE_MS - performance.now())
  const ledgerFile = ledgerFileOf(file, command)
  const why = ledgerFile === null || controlPath(ledgerFile) === null
    ? await listenerFailure(file, timeoutMs)
    : drainFailure(await askGateway<readonly ProcessStatus[]>(file, 'GET', '/status', command, timeoutMs))
  if (why !== null) command.error(`error: not ready: ${why}`, { exitCode: EXIT.failed })
}

function drainFailure(processes: readonly ProcessStatus[]): string | null {
  if (processes.some(({ state }) => state === 'ok')) return null
  return `the gateway is ${processes[0]?.state === 'handing_over' ? 'replaced by another process' : 'draining'}`
}

/** Asks the listener, because without a ledger there is no control socket. */
async function listenerFailure(file: string, timeoutMs: number): Promise<string | null> {
  const { server: { listen: { host, port, fd }, tls } } = loadConfig(file, process.env).config
  if (port === 0 || fd !== undefined) return 'without ledger.file, a gateway whose port is not in the configuration cannot be asked'
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>()
  const url = new URL('/api/status', addressUrl({ host: localHost(host), port }, tls !== null))
  // Do not verify the certificate: the request goes to this machine, but the certificate has other names.
  const request = tls === null ? http.get(url, { timeout: timeoutMs }, resolve) : https.get(url, { timeout: timeoutMs, rejectUnauthorized: false }, resolve)
  request.on('error', reject).on('timeout', () => request.destroy(new Error('the gateway does not answer')))
  try {
    const { statusCode } = await promise
    return statusCode === 200 ? null : `the gateway answers ${statusCode}`
  } catch (error) {
    return messageOf(error)
  } finally {
    request.destroy()
  }
}

/** The host name by which this machine reaches a listener on all interfaces. */
function localHost(host: string): string {
  return host === '' || host === '0.0.0.0' || host === '::' ? 'localhost' : host
}
