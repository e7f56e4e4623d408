import { BlockList, isIP } from 'node:net'

/** A proxy that opens tunnels (CONNECT, RFC 9110 section 9.3.6). */
export interface ProxyServer {
  readonly protocol: 'http:' | 'https:'
  /** An IPv6 address has no brackets. */
  readonly hostname: string
  readonly port: number
  /** The value of Proxy-Authorization; null = none. A secret. */
  readonly authorization: string | null
  /** A PEM file with additional trusted roots; null = none. */
  readonly ca: string | null
}

/** Which connections go through which proxy. */
export interface ProxyRules {
  /** For http URLs; null = direct. */
  readonly http: ProxyServer | null
  readonly https: ProxyServer | null
  /** Hosts that are connected to directly, in the forms of `isException`. */
  readonly except: readonly string[]
}

/** Where a connection goes. */
export interface Destination {
  readonly protocol: string
  /** An IPv6 address can have brackets. */
  readonly hostname: string
  /** Empty = the port of the protocol. */
  readonly port: string
}

/** Loopback and link-local addresses; the metadata services of clouds are link-local. A proxy cannot reach those of this machine. */
const LOCAL = ['localhost', '.localhost', '127.0.0.0/8', '[::1]', '169.254.0.0/16', 'fe80::/10', 'metadata.google.internal']

/** @returns null = direct */
export function proxyFor(rules: ProxyRules | null, destination: Destination): ProxyServer | null {
  if (rules === null) return null
  const proxy = destination.protocol === 'https:' ? rules.https : rules.http
  if (proxy === null) return null
  return [...LOCAL, ...rules.except].some(entry => matches(entry, destination)) ? null : proxy
}

/** The proxy in log lines and messages, without its credential. */
export function proxyName({ protocol, hostname, port }: ProxyServer): string {
  return `${protocol}//${isIP(hostname) === 6 ? `[${hostname}]` : hostname}:${port}`
}

/** The proxy as a URL with its credential, which is a secret. */
export function proxyHref(proxy: ProxyServer): string {
  const url = new URL(proxyName(proxy))
  const [user = '', ...password] = Buffer.from((proxy.authorization ?? '').replace('Basic ', ''), 'base64').toString().split(':')
  url.username = encodeURIComponent(user)
  url.password = encodeURIComponent(password.join(':'))
  return url.href
}

interface Exception {
  readonly host: string
  /** Empty = all ports. */
  readonly port: string
  /** Bits of a CIDR block; null = a host. */
  readonly bits: number | null
}

/**
 * Tells whether the text is `*`, a host (`example.com`, which includes its subdomains), a suffix (`.example.com` or `*.example.com`, only
 * the subdomains), an address, or a CIDR block. All but a block can have a port: `example.com:8443`, `[fd00::1]:443`.
 */
export function isException(text: string): boolean {
  const parsed = parseException(text)
  if (parsed === null) return false
  const { host, port, bits } = parsed
  const family = isIP(host)
  if (Number(port) > 65_535) return false
  if (bits !== null) return family !== 0 && port === '' && bits <= (family === 4 ? 32 : 128)
  return family !== 0 || host === '*' || /^(?:\*?\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?$/.test(host)
}

/** A length of a name or address, with a port: longer texts are no exceptions. */
const MAX_LENGTH = 270

function parseException(text: string): Exception | null {
  if (text.length > MAX_LENGTH) return null
  const lower = text.toLowerCase()
  const [address = '', bits, ...more] = lower.split('/')
  if (more.length > 0) return null
  if (bits !== undefined) return /^\d{1,3}$/.test(bits) ? { host: address, port: '', bits: Number(bits) } : null
  if (isIP(address) !== 0) return { host: address, port: '', bits: null }
  const [, bracketed, name = '', port = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(address) ?? []
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? { host: bracketed, port, bits: null } : null
  return name === '' ? null : { host: name, port, bits: null }
}

function matches(entry: string, { protocol, hostname, port }: Destination): boolean {
  const exception = parseException(entry)
  if (exception === null) return false
  const { host, bits } = exception
  if (exception.port !== '' && exception.port !== (port || (protocol === 'https:' ? '443' : '80'))) return false
  const name = hostname.toLowerCase().replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  if (host === '*') return true
  const family = isIP(name)
  if (family === 0) return bits === null && matchesName(host, name)
  if (isIP(host) === 0) return false
  const list = new BlockList()
  const type = isIP(host) === 4 ? 'ipv4' : 'ipv6'
  if (bits === null) list.addAddress(host, type)
  else list.addSubnet(host, bits, type)
  return list.check(name, family === 4 ? 'ipv4' : 'ipv6')
}

function matchesName(host: string, name: string): boolean {
  if (host.startsWith('*.')) return name.endsWith(host.slice(1))
  if (host.startsWith('.')) return name.endsWith(host)
  return name === host || name.endsWith(`.${host}`)
}
