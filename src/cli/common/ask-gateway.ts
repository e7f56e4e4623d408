import { readFileSync } from 'node:fs'
import * as http from 'node:http'
import { dirname, resolve } from 'node:path'
import { json } from 'node:stream/consumers'
import type { Command } from 'commander'
import { parse } from 'yaml'
import { loadConfig } from '../../config/load/load.ts'
import { ConfigError } from '../../config/problem.ts'
import { expandReferences } from '../../config/text/references.ts'
import { controlPath } from '../../gateway/control.ts'
import { EXIT } from '../../process/exit.ts'
import { loadForLedger } from './problems.ts'

/** Maximum ms for a response, because the reload of a large configuration takes long. */
const TIMEOUT_MS = 60_000

/** Sends a request to the running gateway of a configuration. If no gateway runs, ends the command with exit code 1. */
export async function askGateway<T>(file: string, method: 'GET' | 'POST', path: string, command: Command, timeoutMs = TIMEOUT_MS): Promise<T> {
  const ledgerFile = ledgerFileOf(file, command)
  const fail = (why: string, exitCode: number = EXIT.failed): never => command.error(`error: ${why}`, { exitCode })
  if (ledgerFile === null) return fail(`${file} has no ledger: { file: ... }; this command needs it to find the running gateway`, EXIT.usage)
  const socketPath = controlPath(ledgerFile)
  if (socketPath === null) return fail(`the path of ${ledgerFile} is too long for a socket`)
  const { promise, resolve: responded, reject } = Promise.withResolvers<http.IncomingMessage>()
  const request = http.request({ socketPath, method, path, timeout: timeoutMs }, responded)
  request.on('error', reject).on('timeout', () => request.destroy(new Error('the gateway does not answer'))).end()
  let res: http.IncomingMessage
  try {
    res = await promise
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isAway = code === 'ENOENT' || code === 'ECONNREFUSED'
    return fail(isAway ? `no gateway runs with ${file}` : `${socketPath}: ${message}`)
  }
  const body = await json(res)
  return res.statusCode === 200 ? body as T : fail(String((body as { error?: unknown }).error))
}

/** The path of the ledger. It is found even if the file has errors, because the operator may ask the running gateway about these errors. */
export function ledgerFileOf(file: string, command: Command): string | null {
  try {
    return loadConfig(file, process.env, ['ledger']).config.ledger?.file ?? null
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const path = ledgerPathIn(file)
    // If no path is found, report the errors of the file.
    return path ?? loadForLedger(file, command).config.ledger?.file ?? null
  }
}

function ledgerPathIn(file: string): string | null {
  try {
    const path = (parse(readFileSync(file, 'utf8')) as { ledger?: { file?: unknown } } | null)?.ledger?.file
    if (typeof path !== 'string') return null
    return resolve(dirname(file), expandReferences(path, process.env).text)
  } catch {
    // The file is unreadable, or not YAML.
    return null
  }
}
