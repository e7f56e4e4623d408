import type { Server } from 'node:net'

/** The descriptor on which a server listens. Node has no public property for the descriptor. */
export function descriptorOf(server: Server): number {
  return (server as unknown as { readonly _handle: { readonly fd: number } })._handle.fd
}
