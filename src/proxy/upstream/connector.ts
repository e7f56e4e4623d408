import { readFileSync } from 'node:fs'
import { isIP, type Socket } from 'node:net'
import tls from 'node:tls'
import { buildConnector } from 'undici'
import { descriptorBounds, descriptorOf } from '../../base/descriptors.ts'

/** Calls back when the connection is established, including its TLS handshake. */
export type Connector = buildConnector.connector

export interface ConnectorOptions {
  /** Unix socket or named pipe instead of the host; null = none. */
  readonly socketPath: string | null
  /** ms for connecting, including the TLS handshake. */
  readonly connectTimeout: number
  /** null = the default roots. */
  readonly trust: tls.SecureContext | null
  /** Offer HTTP/2 by ALPN? */
  readonly http2: boolean
}

/** The default roots and those of a PEM file; takes ten milliseconds. @throws the system's error for a file that cannot be read */
export function secureContextFor(ca: string): tls.SecureContext {
  return tls.createSecureContext({ ca: [...tls.rootCertificates, readFileSync(ca, 'utf8')] })
}

/** Unread bytes of a response in its socket. undici's 64 kB would let a paused response take 128 kB: a read can bring another 64. */
const READ_AHEAD_BYTES = 16 * 1024

/**
 * undici's connector, but with the whole timeout for a name with several addresses. Node gives each address half a second, and the last the
 * rest: if the last is unreachable (IPv6 in containers), one lost packet at the others fails. So the first that timed out is retried alone.
 */
export function createConnector({ socketPath, connectTimeout, trust, http2 }: ConnectorOptions): Connector {
  const options = {
    timeout: connectTimeout,
    allowH2: http2,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    highWaterMark: READ_AHEAD_BYTES,
    ...(socketPath === null ? {} : { socketPath }),
    ...(trust === null ? {} : { secureContext: trust }),
  }
  const connect = buildConnector(options)
  const descriptors = descriptorBounds()
  return (target, done) => {
    const callback: buildConnector.Callback = (...args) => {
      const [error, socket] = args
      if (error !== null || descriptorOf(socket) < descriptors.upstreams) done(...args)
      else done(shortageAfter(socket), null)
    }
    connect(target, (...args) => {
      const address = slowAddress(args[0])
      if (address === null) callback(...args)
      else buildConnector({ ...options, ...singleAddressOptions(address) })(target, callback)
    })
  }
}

/** Closes a connection that took one of the reserved descriptors. @returns the system's error for no descriptor */
function shortageAfter(socket: Socket): Error {
  socket.destroy()
  return Object.assign(new Error('the last file descriptors are reserved'), { code: 'EMFILE' })
}

/** The first of several addresses that exceeded node's half second; null = none. */
function slowAddress(error: Error | null): string | null {
  if (!(error?.cause instanceof AggregateError)) return null
  const attempts = error.cause.errors as readonly (NodeJS.ErrnoException & { address?: string })[]
  return attempts.find(({ code }) => code === 'ETIMEDOUT')?.address ?? null
}

type LookupCallback = (err: null, address: string, family: number) => void

/** Only the lookup is overridden: TLS still checks the name. */
function singleAddressOptions(address: string) {
  return {
    autoSelectFamily: false,
    lookup: (_name: string, _options: unknown, found: LookupCallback) => found(null, address, isIP(address)),
  }
}
