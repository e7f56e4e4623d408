import { request, type IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { proxyName, type ProxyServer } from '../../base/outgoing-proxy.ts'
import { createConnector, secureContextFor, type Connector, type ConnectorOptions } from './connector.ts'

/** Bytes of a proxy's response head at most. */
const MAX_HEAD_BYTES = 16 * 1024

/** A proxy opened no tunnel. The message is for the operator and contains no credential. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError'
  /** undici retries no connection with this code. */
  readonly code = 'PROXY_FAILED'

  constructor(proxy: ProxyServer, what: string, options?: ErrorOptions) {
    super(`proxy ${proxyName(proxy)}: ${what}`, options)
  }
}

/** `createConnector`, or its like through a proxy. @throws the system's error if the CA file of the proxy cannot be read */
export function createRoute(proxy: ProxyServer | null, options: ConnectorOptions): Connector {
  return proxy === null || options.socketPath !== null ? createConnector(options) : createTunnelConnector(proxy, options)
}

/**
 * Opens connections through tunnels, for plain http too: no request and no credential is readable for the proxy if the upstream uses https.
 * The TLS handshake with the upstream checks the upstream's name.
 */
function createTunnelConnector(proxy: ProxyServer, { connectTimeout, trust, http2, serverName = null }: ConnectorOptions): Connector {
  const dial = createConnector({
    socketPath: null, connectTimeout, trust: proxy.ca === null ? null : secureContextFor(proxy.ca), http2: false,
  })
  const secure = buildConnector({ timeout: connectTimeout, allowH2: http2, ...trust === null ? {} : { secureContext: trust } })
  return (target, callback) => {
    const { hostname, protocol, port } = proxy
    const endsAt = performance.now() + connectTimeout
    dial({ hostname, host: hostname, protocol, port: String(port) }, (...[refused, socket]) => {
      if (refused !== null) return callback(new ProxyError(proxy, reasonOf(refused), { cause: refused }), null)
      const timeout = Math.max(1, endsAt - performance.now())
      openTunnel(proxy, socket, destinationOf(target), timeout, error => {
        if (error !== null) {
          socket.destroy()
          callback(error, null)
        } else if (target.protocol === 'https:') secure({ ...target, ...serverName !== null && { servername: serverName }, httpSocket: socket }, callback)
        else callback(null, socket)
      })
    })
  }
}

/** Sends CONNECT. Calls back once. @param timeout ms for the response */
function openTunnel(proxy: ProxyServer, socket: Socket, destination: string, timeout: number, done: (error: ProxyError | null) => void): void {
  const { authorization } = proxy
  const connect = request({
    method: 'CONNECT', path: destination, createConnection: () => socket, maxHeaderSize: MAX_HEAD_BYTES, setHost: false,
    headers: { host: destination, ...authorization !== null && { 'proxy-authorization': authorization } },
  })
  const end = (error: ProxyError | null): void => {
    clearTimeout(timer)
    connect.removeAllListeners().on('error', noop)
    done(error)
  }
  const timer = setTimeout(() => end(new ProxyError(proxy, `no response to CONNECT within ${Math.round(timeout / 1_000)} s`)), timeout)
  connect.once('connect', ({ statusCode = 0 }: IncomingMessage, _socket: Socket, head: Buffer) => {
    if (statusCode < 200 || statusCode >= 300) return end(new ProxyError(proxy, refusalOf(statusCode, authorization !== null)))
    if (head.length > 0) socket.unshift(head)
    end(null)
  }).once('error', cause => end(new ProxyError(proxy, `closed the connection before it answered CONNECT (${reasonOf(cause)})`, { cause })))
  connect.end()
}

function refusalOf(status: number, hasCredential: boolean): string {
  if (status === 407) return hasCredential ? 'responds 407: it refuses user and password' : 'responds 407: it requires user and password in its URL'
  return `responds ${status} to CONNECT`
}

function destinationOf({ protocol, hostname, port }: buildConnector.Options): string {
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname
  return `${host}:${port || (protocol === 'https:' ? 443 : 80)}`
}

function reasonOf({ message, code }: NodeJS.ErrnoException): string {
  return code ?? message
}

function noop(): void {}
