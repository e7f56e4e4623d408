import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FILE_MODE } from '../base/files/private-file.ts'
import { createSimulator } from '../simulator/index.ts'

export interface RunningSimulator { readonly socketPath: string, close(): Promise<void> }

/** Starts the in-process simulator on a socket in a private folder, which only the gateway's user can access. */
export async function startSimulator(): Promise<RunningSimulator> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-'))
  const socketPath = process.platform === 'win32' ? `\\\\.\\pipe\\${folder.replaceAll(/[^\w-]/g, '-')}` : join(folder, 'simulator')
  const server = createSimulator()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(socketPath, resolve)
  await promise
  if (process.platform !== 'win32') await chmod(socketPath, FILE_MODE)
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { socketPath, close }
}
