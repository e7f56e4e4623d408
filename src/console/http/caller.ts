import type { Client, MountHost } from '../../pipeline/parts/mount.ts'
import type { ClientRequest } from '../../proxy/client/client.ts'
import { ConsoleProblem } from './console-problem.ts'

export interface Caller extends Client {
  /** true if the browser uses TLS, as a trusted proxy reports. */
  readonly secure: boolean
  /** Host of the console in the browser, such as `console.example.com` or `127.0.0.1:8081`. */
  readonly host: string
}

export function callerOf(host: MountHost, req: ClientRequest): Caller {
  const client = host.clientOf(req)
  const { headers } = req
  const own = headers[':authority'] ?? headers.host ?? ''
  if (client.trustedPeer === null) return { ...client, secure: false, host: String(own) }
  const secure = firstListItem(headers['x-forwarded-proto'])?.toLowerCase() === 'https'
  return { ...client, secure, host: firstListItem(headers['x-forwarded-host']) ?? String(own) }
}

/** The first item of a list to which each proxy appends. It is from the proxy to which the browser connected. */
function firstListItem(header: string | string[] | undefined): string | undefined {
  return [header].flat()[0]?.split(',', 1)[0]?.trim()
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

export function isSafeMethod(method: string): boolean {
  return SAFE_METHODS.has(method)
}

/**
 * Refuses requests from pages of other sites. Only browsers send the two headers. A site cannot make other programs send a cookie.
 * @throws ConsoleProblem forbidden
 */
export function checkSite(req: ClientRequest, { secure, host }: Caller): void {
  const { origin, 'sec-fetch-site': site } = req.headers
  const reads = isSafeMethod(req.method ?? '')
  const isOwn = site === undefined || site === 'same-origin' || (reads && site === 'none')
  if (!isOwn) throw new ConsoleProblem('forbidden', 'The request comes from another site.')
  if (origin === undefined || reads) return
  const wanted = `${secure ? 'https' : 'http'}://${host}`
  if (origin.toLowerCase() === wanted.toLowerCase()) return
  throw new ConsoleProblem('forbidden',
    `The request comes from ${origin}, but the console is at ${wanted}. ` +
    'A proxy in front must forward Host and X-Forwarded-Proto and be listed in server.trusted_proxies.')
}
