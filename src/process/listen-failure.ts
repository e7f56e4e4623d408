import { fstatSync } from 'node:fs'
import { formatAddress } from '../config/listen-address.ts'
import type { Config } from '../config/types.ts'

const REASONS: ReadonlyMap<string, string> = new Map(Object.entries({
  EADDRINUSE: 'another program listens there already; stop it, or choose another port',
  EACCES: 'this user may not; ports below 1024 are often reserved',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'the host name is not known here',
  ENOTSUP: 'this system shares no ports; remove server.reuse_port',
}))

/**
 * Why the gateway cannot listen on a configured descriptor; null = no reason found. Must be called before listening: node closes a
 * descriptor that is not a socket, and aborts if the descriptor is one of node's own.
 */
export function descriptorFailure({ server, console, docs, telemetry }: Config): string | null {
  const listeners = [server, console, docs, telemetry.prometheus]
  const descriptors = listeners.map(listener => listener?.listen.fd)
  return descriptors.every(fd => fd === undefined || isSocket(fd)) ? null : noSocketMessage('ENOTSOCK')
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket()
  } catch {
    // The descriptor is not open.
    return false
  }
}

function noSocketMessage(code: string): string {
  return `cannot listen on the descriptor: no open socket was passed under that number (${code})`
}

/** Why a listener could not be opened; null = not an error of a listener, or its code is unknown. */
export function listenFailure(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  const { code = '', syscall, address, port = 0, hostname } = error as ListenError
  // An error of a descriptor has no address.
  if (syscall === 'listen' && address === null) {
    return code === 'EAFNOSUPPORT' ? 'cannot listen on the descriptor: it is a Unix socket; hand over one of TCP' : noSocketMessage(code)
  }
  const reason = REASONS.get(code)
  const host = address ?? hostname
  if (reason === undefined || host === undefined || host === null) return null
  const place = code === 'ENOTFOUND' ? host : formatAddress({ host, port })
  return `cannot listen on ${place}: ${reason} (${code})`
}

type ListenError = NodeJS.ErrnoException & { readonly address?: string | null, readonly port?: number, readonly hostname?: string }
