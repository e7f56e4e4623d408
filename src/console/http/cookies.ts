import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from './caller.ts'

/** Session cookie with TLS. The browser accepts it only from this host, and sends it only to this host (RFC 6265bis, `__Host-`). */
const SECURE = { name: '__Host-gateway_console', path: '/' } as const
/** Session cookie without TLS. Its path keeps it out of requests to the gateway's own API. */
const PLAIN = { name: 'gateway_console', path: '/console/' } as const

/** Cookie of a login at the identity provider. It is not `strict`, because another site causes the request that ends the login. */
const PENDING = { secure: { name: '__Host-gateway_login', path: '/' }, plain: { name: 'gateway_login', path: '/console/login/' } } as const
/** ms in which the user must log in at the provider. */
export const LOGIN_TIMEOUT = 10 * 60_000

export function tokenOf(request: FastifyRequest, { secure }: Caller): string | null {
  const token = request.cookies[(secure ? SECURE : PLAIN).name]
  return token === undefined || token === '' ? null : token
}

/** Tells whether the header contains a session cookie: both names contain `PLAIN.name`. @param cookie the Cookie header */
export function hasToken(cookie: string | undefined): boolean {
  return cookie?.includes(PLAIN.name) ?? false
}

export function setToken(reply: FastifyReply, { secure }: Caller, token: string | null): void {
  const { name, path } = secure ? SECURE : PLAIN
  const options = { path, httpOnly: true, sameSite: 'strict', secure } as const
  if (token === null) void reply.clearCookie(name, options)
  else void reply.setCookie(name, token, options)
}

export function pendingLoginOf(request: FastifyRequest, { secure }: Caller): string | null {
  return request.cookies[PENDING[secure ? 'secure' : 'plain'].name] ?? null
}

export function setPendingLogin(reply: FastifyReply, { secure }: Caller, pending: string | null): void {
  const { name, path } = PENDING[secure ? 'secure' : 'plain']
  const options = { path, httpOnly: true, sameSite: 'lax', secure } as const
  if (pending === null) void reply.clearCookie(name, options)
  else void reply.setCookie(name, pending, { ...options, maxAge: LOGIN_TIMEOUT / 1_000 })
}
