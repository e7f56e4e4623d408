import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from './caller.ts'

/** With TLS: the browser accepts this cookie from this host only, and sends it to this host only (RFC 6265bis, `__Host-`). */
const SECURE = { name: '__Host-gateway_console', path: '/' } as const
/** Without TLS. Requests to the API of the gateway do not carry this cookie. */
const PLAIN = { name: 'gateway_console', path: '/console/' } as const

/** A login at the identity provider. Not `strict`: the request that ends it comes from another site. */
const PENDING = { secure: { name: '__Host-gateway_login', path: '/' }, plain: { name: 'gateway_login', path: '/console/login/' } } as const
/** ms within which the user must log in at the provider */
export const LOGIN_TIMEOUT = 10 * 60_000

export function tokenOf(request: FastifyRequest, { secure }: Caller): string | null {
  const token = request.cookies[(secure ? SECURE : PLAIN).name]
  return token === undefined || token === '' ? null : token
}

/** Whether the header names a session cookie: `PLAIN.name` is a part of both names. @param cookie the Cookie header */
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
