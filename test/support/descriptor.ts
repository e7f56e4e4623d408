import type { Server } from 'node:net'

/** The descriptor on which a server listens, as a supervisor would pass it on; node has no public name for it. */
export function descriptorOf(server: Server): number {
  return (server as unknown as { readonly _handle: { readonly fd: number } })._handle.fd
}
