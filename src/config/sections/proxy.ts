import { resolve } from 'node:path'
import { isException, proxyFor, type ProxyRules, type ProxyServer } from '../../base/outgoing-proxy.ts'
import type { RawConfig, RawUpstream } from '../raw.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import type { Environment } from '../text/references.ts'
import { checkCertificates } from './pem.ts'

const TRUE = 'write false for direct connections, or the proxy'
const FORM = 'such as http://proxy.example.com:3128'

/** Reads `proxy`, or without it the variables of the environment. @returns null = all connections are direct */
export function buildProxy({ proxy: raw }: RawConfig, directory: string, env: Environment, findings: Findings): ProxyRules | null {
  if (raw === false) return null
  if (raw === true) {
    findings.error(['proxy'], TRUE)
    return null
  }
  if (raw === undefined) return findings.has(['proxy']) ? null : environmentRules(env, findings)
  const ca = raw.ca === undefined ? null : resolve(directory, raw.ca)
  if (ca !== null) checkCertificates(ca, ['proxy', 'ca'], findings)
  const server = raw.url === undefined ? null : findings.parsed(['proxy', 'url'], () => parseProxy(raw.url as string, ca))
  const except = (raw.except ?? []).flatMap((entry, at) => {
    if (entry === undefined) return []
    if (isException(entry)) return [entry]
    findings.error(['proxy', 'except', at], 'this is neither a host, a suffix such as .internal, an address nor a CIDR block')
    return []
  })
  return { http: server, https: server, except }
}

/** The proxy of an upstream: its own, or by the rules. @param url null = the simulator, or a URL with an error @returns null = direct */
export function upstreamProxy(
  { proxy: own }: RawUpstream, url: URL | null, { rules, ca }: { readonly rules: ProxyRules | null, readonly ca: string | null }, path: Path,
  findings: Findings,
): ProxyServer | null {
  if (own === false || url === null) return null
  if (own === true) {
    findings.error(path, TRUE)
    return null
  }
  return own === undefined ? proxyFor(rules, url) : findings.parsed(path, () => parseProxy(own, ca))
}

/** @throws RangeError with a message that says what to change, and does not contain the text: it may have a password */
function parseProxy(text: string, ca: string | null): ProxyServer {
  const url = URL.parse(text)
  if (url === null || !/^https?:\/\/[^/\\]/i.test(text)) throw new RangeError(`the proxy is not an http or https URL ${FORM}`)
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') throw new RangeError(`the URL of a proxy ends with its port, ${FORM}`)
  const protocol = url.protocol === 'https:' ? 'https:' : 'http:'
  return {
    protocol, ca,
    hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || (protocol === 'https:' ? 443 : 80)),
    authorization: authorizationOf(url),
  }
}

/** Basic (RFC 7617). */
function authorizationOf({ username, password }: URL): string | null {
  if (username === '' && password === '') return null
  try {
    return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`
  } catch {
    throw new RangeError('user and password of a proxy are percent-encoded: write %25 for %')
  }
}

/** The usual variables. The lower-case name comes first, as in curl. A value without a scheme is the address of an http proxy. */
function environmentRules(env: Environment, findings: Findings): ProxyRules | null {
  const valueOf = (name: string): string => (env[name.toLowerCase()] || env[name] || '').trim()
  const serverOf = (name: string): ProxyServer | null => {
    const value = valueOf(name)
    if (value === '') return null
    try {
      return parseProxy(value.includes('://') ? value : `http://${value}`, null)
    } catch (error) {
      findings.errorFile(`${name} of the environment: ${(error as Error).message}; proxy: false ignores it`)
      return null
    }
  }
  const [http, https] = [serverOf('HTTP_PROXY'), serverOf('HTTPS_PROXY')]
  if (http === null && https === null) return null
  return { http, https, except: valueOf('NO_PROXY').split(/[\s,]+/).filter(isException) }
}
