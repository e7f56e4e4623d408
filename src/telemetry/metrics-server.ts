import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { createSideServer } from '../base/server-limits.ts'
import { localUrl } from '../config/listen-address.ts'
import type { Address } from '../config/types.ts'
import { contentType, type MetricsFormat } from './render.ts'

export interface MetricsServer {
  /** The URL with the actual port, such as `http://127.0.0.1:9464`. */
  readonly url: string
  close(): Promise<void>
}

/** Maximum number of connections, because each uses memory. Only Prometheus and a few other readers connect. */
const MAX_CONNECTIONS = 64
/** Minimum bytes of a response that is compressed. */
const MIN_COMPRESSED = 4_096

const compress = promisify(gzip)

/** Serves the metrics. Scrapes at the same time share one text. @throws the system's error if the address cannot be used */
export async function serveMetrics(listen: Address, render: (format: MetricsFormat) => Promise<string>): Promise<MetricsServer> {
  const running = new Map<MetricsFormat, Promise<string>>()
  const shared = (format: MetricsFormat): Promise<string> => {
    const known = running.get(format)
    if (known !== undefined) return known
    const text = render(format).finally(() => running.delete(format))
    running.set(format, text)
    return text
  }
  const server = createSideServer((req, res) => {
    respond(req, res, shared).catch(() => {
      if (!res.headersSent) res.writeHead(500)
      res.end()
    })
  }, MAX_CONNECTIONS)
  server.listen(listen.fd === undefined ? { host: listen.host, port: listen.port } : { fd: listen.fd })
  await once(server, 'listening')
  return {
    url: localUrl(server.address(), false),
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function respond(req: IncomingMessage, res: ServerResponse, text: (format: MetricsFormat) => Promise<string>): Promise<void> {
  const path = req.url?.split('?')[0]
  if (path !== '/metrics') return refuse(res, 404, 'The metrics are at /metrics.\n')
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.setHeader('allow', 'GET, HEAD')
    return refuse(res, 405, 'Use GET.\n')
  }
  const format = /application\/openmetrics-text/.test(req.headers.accept ?? '') ? 'openmetrics' : 'text'
  const plain = Buffer.from(await text(format))
  const isCompressed = plain.length >= MIN_COMPRESSED && /\bgzip\b/.test(req.headers['accept-encoding'] ?? '')
  const body = isCompressed ? await compress(plain) : plain
  res.writeHead(200, {
    'content-type': contentType(format), 'content-length': body.length, 'cache-control': 'no-store',
    vary: 'accept, accept-encoding', ...isCompressed && { 'content-encoding': 'gzip' },
  })
  res.end(req.method === 'HEAD' ? undefined : body)
}

function refuse(res: ServerResponse, status: number, message: string): void {
  res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(message) })
  res.end(message)
}
