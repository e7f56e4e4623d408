import { spawn } from 'node:child_process'
import { credentialUnavailable } from '../../base/errors.ts'
import { secretText } from '../../base/secrets/secret-text.ts'

const MAX_OUTPUT_BYTES = 64 * 1024

/**
 * Reads the secret that a command prints on standard output. Does not read standard error, which may contain secrets too.
 * @param signal ends the command and its child processes
 * @throws GatewayError credential_unavailable
 */
export async function runCommand([program = '', ...args]: readonly string[], signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  // `detached` starts the command in its own process group, so that it ends together with its child processes.
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  const chunks: Buffer[] = []
  let size = 0
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length
    chunks.push(chunk)
    if (size > MAX_OUTPUT_BYTES) reject(credentialUnavailable(`the command prints more than ${MAX_OUTPUT_BYTES / 1024} kB`))
  })
  child.on('error', ({ code }: NodeJS.ErrnoException) => reject(credentialUnavailable(`the command cannot be run: ${code}`)))
  child.on('close', (code, killedBy) => {
    if (code === 0) resolve(secretText(Buffer.concat(chunks)))
    else reject(credentialUnavailable(code === null ? `the command was killed by ${killedBy}` : `the command ended with exit code ${code}`))
  })
  const end = (): void => {
    child.stdout.destroy()
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The command has ended already.
    }
  }
  signal.addEventListener('abort', end)
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', end)
    if (child.exitCode === null && child.signalCode === null) end()
  }
}
