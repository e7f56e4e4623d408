import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from './caller.ts'

/**
 * With TLS, the browser accepts this cookie only from this host and sends it only to this host (RFC 6265bis,
 * `__Host-`).
 */
const SECURE = { name: '__Host-gateway_console', path: '/' } as const
/** The browser does not send this cookie with requests to the gateway's API. */
const PLAIN = { name: 'gateway_console', path: '/console/' } as const

/** A pending login at the identity provider. Not `strict`: the request that returns comes from another site. */
const PENDING = { secure: { name: '__Host-gateway_login', path: '/' }, plain: { name: 'gateway_login', path: '/console/login/' } } as const
/** ms within which the user must log in at the provider. */
export const LOGIN_TIMEOUT = 10 * 60_000

/** The token of a request; null = none. */
export function tokenOf(request: FastifyRequest, { secure }: Caller): string | null {
  const token = request.cookies[(secure ? SECURE : PLAIN).name]
  return token === undefined || token === '' ? null : token
}

/** May a request have a token? @param cookie the Cookie header */
export function hasToken(cookie: string | undefined): boolean {
  return cookie?.includes(PLAIN.name) ?? false
}

/** Sets the browser's token; null = removes it. */
export function setToken(reply: FastifyReply, { secure }: Caller, token: string | null): void {
  const { name, path } = secure ? SECURE : PLAIN
  const options = { path, httpOnly: true, sameSite: 'strict', secure } as const
  if (token === null) void reply.clearCookie(name, options)
  else void reply.setCookie(name, token, options)
}

/** The pending login of a request; null = none. */
export function pendingLoginOf(request: FastifyRequest, { secure }: Caller): string | null {
  return request.cookies[PENDING[secure ? 'secure' : 'plain'].name] ?? null
}

/** Sets the browser's pending login; null = removes it. */
export function setPendingLogin(reply: FastifyReply, { secure }: Caller, pending: string | null): void {
  const { name, path } = PENDING[secure ? 'secure' : 'plain']
  const options = { path, httpOnly: true, sameSite: 'lax', secure } as const
  if (pending === null) void reply.clearCookie(name, options)
  else void reply.setCookie(name, pending, { ...options, maxAge: LOGIN_TIMEOUT / 1_000 })
}
