import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import tls from 'node:tls'
import { buildConnector } from 'undici'
import { descriptorBounds, descriptorOf } from '../../base/descriptors.ts'

/** Makes a connection and calls back when it is established, including its TLS handshake. */
export type Connector = buildConnector.connector

/** How connections to an upstream are made. */
export interface ConnectorOptions {
  /** Unix socket or named pipe to connect to instead of the host; null = none. */
  readonly socketPath: string | null
  /** ms for connecting, including the TLS handshake. */
  readonly connectTimeout: number
  /** The trusted roots; null = the default roots. */
  readonly trust: tls.SecureContext | null
  /** Offer HTTP/2 by ALPN? */
  readonly http2: boolean
}

/**
 * Trusts the default roots and those of a PEM file. Create it once: it takes ten milliseconds.
 * @throws the system's error for a file that cannot be read
 */
export function secureContextFor(ca: string): tls.SecureContext {
  return tls.createSecureContext({ ca: [...tls.rootCertificates, readFileSync(ca, 'utf8')] })
}

/**
 * Bytes of a response that wait in its socket before reading stops. With undici's 64 kB, a paused response takes up
 * to 128 kB, because each read can bring another 64.
 */
const READ_AHEAD_BYTES = 16 * 1024

/**
 * undici's connector, but with the whole timeout for a name with several addresses. Node gives each address half a
 * second and the last one the rest. If the last one is unreachable, as an IPv6 address is from most containers, one
 * lost packet at the others fails the connection. So the first address that timed out is tried again alone.
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

/**
 * Closes a connection that took one of the last descriptors. @returns the error that the system gives when none is
 * left
 */
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
