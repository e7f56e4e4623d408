import { isIP, isIPv4, isIPv6, type AddressInfo } from 'node:net'
import type { Address } from './types.ts'

const LOOPBACK: ReadonlyMap<string, string> = new Map(Object.entries({ '0.0.0.0': '127.0.0.1', '::': '::1' }))

const ADDRESS_FORMS = 'write host:port, [IPv6]:port or :port'

/**
 * Parses `127.0.0.1:8080`, `localhost:0` or `[::1]:8080`. `:8080` and `8080` mean all interfaces (an empty host). `fd:3` is a descriptor
 * that already listens.
 * @throws RangeError with a message that says what to change
 */
export function parseAddress(text: string | number): Address {
  const whole = String(text)
  const [, fd] = /^fd:(\d{1,5})$/.exec(whole) ?? []
  if (fd !== undefined) return inheritedSocket(Number(fd))
  if (whole.includes('://')) throw new RangeError(`an address has no scheme and no path; ${ADDRESS_FORMS}`)
  if (isIPv6(whole)) throw new RangeError(`an IPv6 address needs brackets, and a port behind them; ${ADDRESS_FORMS}`)
  const [, host = '', port] = /^(?:(.*):)?(\d{1,5})$/s.exec(whole) ?? []
  if (port === undefined) throw new RangeError(`the port is missing; ${ADDRESS_FORMS}`)
  if (Number(port) > 65535) throw new RangeError('a port is at most 65535')
  return { host: hostOf(host), port: Number(port) }
}

/** Checks the descriptor of a socket: systemd passes descriptors from 3 on (sd_listen_fds(3)). */
function inheritedSocket(fd: number): Address {
  if (fd < 3) throw new RangeError('the descriptors below 3 are standard input, output and error')
  return { host: '', port: 0, fd }
}

function hostOf(host: string): string {
  if (host.startsWith('[') && host.endsWith(']')) {
    const inner = host.slice(1, -1)
    if (isIPv6(inner)) return inner
    throw new RangeError('the brackets do not hold an IPv6 address')
  }
  if (host.includes(':')) throw new RangeError(`an IPv6 address needs brackets; ${ADDRESS_FORMS}`)
  // Four numbers that are no IPv4 address must be refused, because the system would look them up as a name.
  const numeric = /^[\d.]+$/.test(host)
  const named = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/.test(host)
  if (host !== '' && (numeric ? !isIPv4(host) : !named)) {
    throw new RangeError(`the host is neither an IP address nor a name; ${ADDRESS_FORMS}`)
  }
  return host
}

/** Formats an address. IPv6 is in brackets; all interfaces are `*`. */
export function formatAddress({ host, port, fd }: Address): string {
  if (fd !== undefined) return `fd:${fd}`
  if (host === '') return `*:${port}`
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}

/** The URL of an address: `http://127.0.0.1:8080`. All interfaces are `0.0.0.0`. */
export function addressUrl({ host, port }: Address, isSecure: boolean): string {
  return `${isSecure ? 'https' : 'http'}://${formatAddress({ host: host === '' ? '0.0.0.0' : host, port })}`
}

/**
 * The URL by which this machine reaches a server. If the server listens on all interfaces, the URL has a loopback address.
 * @throws the error of a listener if the descriptor is a Unix socket, because a Unix socket has no such URL
 */
export function localUrl(listening: AddressInfo | string | null, isSecure: boolean): string {
  if (listening === null || typeof listening === 'string') {
    const error = new Error('listen EAFNOSUPPORT: a Unix socket')
    throw Object.assign(error, { code: 'EAFNOSUPPORT', syscall: 'listen', address: null })
  }
  const { address, port } = listening
  const host = LOOPBACK.get(address) ?? address
  return addressUrl({ host, port }, isSecure)
}

/**
 * Tells whether two listeners cannot have these addresses at the same time. Port 0 never conflicts, because each listener gets a free port.
 */
export function addressesConflict(a: Address, b: Address): boolean {
  if (a.fd !== undefined || b.fd !== undefined) return a.fd === b.fd
  if (a.port !== b.port || a.port === 0) return false
  return a.host === b.host || isWildcardHost(a.host) || isWildcardHost(b.host)
}

function isWildcardHost(host: string): boolean {
  return host === '' || host === '0.0.0.0' || host === '::'
}

/** Tells whether the text is an IP address, with or without a prefix length: `10.0.0.0/8`, `fd00::/8`. */
export function isAddressOrBlock(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0 || address.includes('%')) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128))
}
