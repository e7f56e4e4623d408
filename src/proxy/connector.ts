import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import tls from 'node:tls'
import { buildConnector } from 'undici'
import { descriptorBounds, descriptorOf } from '../base/descriptors.ts'

/** Makes a connection, and is called back when it stands, its TLS handshake done. */
export type Connector = buildConnector.connector

/** How connections to an upstream are made. */
export interface ConnectorOptions {
  /** Unix socket or named pipe to connect to instead of the host; null = none. */
  readonly socketPath: string | null
  /** Milliseconds in which a connection has to stand, its TLS handshake done. */
  readonly connectTimeout: number
  /** What makes certificates good; null = the usual roots. */
  readonly trust: tls.SecureContext | null
  /** May it speak HTTP/2, where that is offered by ALPN? */
  readonly http2: boolean
}

/**
 * Trust in the usual roots, and in those of a PEM file. To be made once: it takes ten milliseconds.
 * @throws the system's error for a file that cannot be read
 */
export function secureContextFor(ca: string): tls.SecureContext {
  return tls.createSecureContext({ ca: [...tls.rootCertificates, readFileSync(ca, 'utf8')] })
}

/**
 * Bytes of a response that may wait in its socket, beyond which nothing is read: undici's own 64 kB let a response that
 * is paused take up to 128 kB, as each read may bring another 64.
 */
const READ_AHEAD_BYTES = 16 * 1024

/**
 * undici's connector, with the whole of its time for a name of several addresses. Node gives each of these
 * half a second, whatever the time, and the last one the rest: where that is out of reach, as an IPv6 address
 * is from most containers, one lost packet at the others was the end of it. The first that ran out of its
 * half second is asked again then, alone.
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

/** Closes a connection that has one of the last descriptors. @returns what the system says when there is none */
function shortageAfter(socket: Socket): Error {
  socket.destroy()
  return Object.assign(new Error('the last file descriptors are reserved'), { code: 'EMFILE' })
}

/** The first address of several to which node's time was too short; null = there is none. */
function slowAddress(error: Error | null): string | null {
  if (!(error?.cause instanceof AggregateError)) return null
  const attempts = error.cause.errors as readonly (NodeJS.ErrnoException & { address?: string })[]
  return attempts.find(({ code }) => code === 'ETIMEDOUT')?.address ?? null
}

type LookupCallback = (err: null, address: string, family: number) => void

/** The name is looked up to this address: TLS goes by the name. */
function singleAddressOptions(address: string) {
  return {
    autoSelectFamily: false,
    lookup: (_name: string, _options: unknown, found: LookupCallback) => found(null, address, isIP(address)),
  }
}
