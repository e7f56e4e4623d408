import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from './caller.ts'

/**
 * Under TLS the browser takes it from this host alone, and gives it to nothing else (RFC 6265bis, `__Host-`).
 */
const SECURE = { name: '__Host-gateway_console', path: '/' } as const
/** It does not go along with requests of the API, which are none of its business. */
const PLAIN = { name: 'gateway_console', path: '/console/' } as const

/** A login that is pending at the identity provider. Not `strict`: the request that returns comes from another site. */
const PENDING = { secure: { name: '__Host-gateway_login', path: '/' }, plain: { name: 'gateway_login', path: '/console/login/' } } as const
/** ms in which somebody has to log in at the provider. */
export const LOGIN_TIMEOUT = 10 * 60_000

/** The token that came with a request; null = none. */
export function tokenOf(request: FastifyRequest, { secure }: Caller): string | null {
  const token = request.cookies[(secure ? SECURE : PLAIN).name]
  return token === undefined || token === '' ? null : token
}

/** May a request have a token? @param cookie the Cookie header */
export function hasToken(cookie: string | undefined): boolean {
  return cookie?.includes(PLAIN.name) ?? false
}

/** Tells the browser what to keep; null = nothing any more. */
export function setToken(reply: FastifyReply, { secure }: Caller, token: string | null): void {
  const { name, path } = secure ? SECURE : PLAIN
  const options = { path, httpOnly: true, sameSite: 'strict', secure } as const
  if (token === null) void reply.clearCookie(name, options)
  else void reply.setCookie(name, token, options)
}

/** The login in progress that came with a request; null = none. */
export function pendingLoginOf(request: FastifyRequest, { secure }: Caller): string | null {
  return request.cookies[PENDING[secure ? 'secure' : 'plain'].name] ?? null
}

/** Tells the browser what login is in progress; null = none any more. */
export function setPendingLogin(reply: FastifyReply, { secure }: Caller, pending: string | null): void {
  const { name, path } = PENDING[secure ? 'secure' : 'plain']
  const options = { path, httpOnly: true, sameSite: 'lax', secure } as const
  if (pending === null) void reply.clearCookie(name, options)
  else void reply.setCookie(name, pending, { ...options, maxAge: LOGIN_TIMEOUT / 1_000 })
}
