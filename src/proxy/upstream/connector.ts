import { readFileSync } from 'node:fs'
import { isIP, type Socket } from 'node:net'
import tls from 'node:tls'
import { buildConnector } from 'undici'
import { descriptorBounds, descriptorOf } from '../../base/descriptors.ts'

/** Opens a connection. Calls back when the TCP connection and the TLS handshake are complete. */
export type Connector = buildConnector.connector

export interface ConnectorOptions {
  /** Unix socket or named pipe to connect to instead of the host; null = connect to the host. */
  readonly socketPath: string | null
  /** Milliseconds for connecting, including the TLS handshake. */
  readonly connectTimeout: number
  /** Trusted TLS roots, and the gateway's own certificate; null = the default roots, and no certificate. */
  readonly trust: tls.SecureContext | null
  /** The name that the certificate must have; absent = the host's. */
  readonly serverName?: string | null
  /** true = offer HTTP/2 by ALPN. */
  readonly http2: boolean
}

/** A certificate with its chain, and its private key, as PEM files. */
export interface KeyPair {
  readonly cert: string
  readonly key: string
  /** null = the key has none. */
  readonly passphrase: string | null
}

/**
 * The default roots and the roots of a PEM file, and a certificate to show. Takes 10 ms.
 * @throws the system's error if a file cannot be read
 */
export function secureContextFor(ca: string | null, pair: KeyPair | null = null): tls.SecureContext {
  return tls.createSecureContext({
    ...ca !== null && { ca: [...tls.rootCertificates, readFileSync(ca, 'utf8')] },
    ...pair !== null && { cert: readFileSync(pair.cert), key: readFileSync(pair.key), ...pair.passphrase !== null && { passphrase: pair.passphrase } },
  })
}

/** Bytes that a socket buffers. With undici's 64 kB, a paused response could take 128 kB, because one more read can add 64 kB. */
const READ_AHEAD_BYTES = 16 * 1024

/**
 * undici's connector, but a host with several addresses gets the whole timeout. Node gives each address half a second and the last address
 * the rest. If the last address is unreachable (IPv6 in containers), one lost packet at another address makes the connection fail, so the
 * first address that timed out is retried alone.
 */
export function createConnector({ socketPath, connectTimeout, trust, http2, serverName = null }: ConnectorOptions): Connector {
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
  return (asked, done) => {
    const target = serverName === null ? asked : { ...asked, servername: serverName }
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

/** Closes a connection that uses a reserved file descriptor. @returns the error that the system reports if no descriptor is left */
function shortageAfter(socket: Socket): Error {
  socket.destroy()
  return Object.assign(new Error('the last file descriptors are reserved'), { code: 'EMFILE' })
}

/** @returns the first of several addresses that did not connect within node's half second; null = none */
function slowAddress(error: Error | null): string | null {
  if (!(error?.cause instanceof AggregateError)) return null
  const attempts = error.cause.errors as readonly (NodeJS.ErrnoException & { address?: string })[]
  return attempts.find(({ code }) => code === 'ETIMEDOUT')?.address ?? null
}

type LookupCallback = (err: null, address: string, family: number) => void

/** Options that connect to one address. They override only the lookup, so that TLS checks the host's name. */
function singleAddressOptions(address: string) {
  return {
    autoSelectFamily: false,
    lookup: (_name: string, _options: unknown, found: LookupCallback) => found(null, address, isIP(address)),
  }
}
