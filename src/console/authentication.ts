import type { FastifyRequest } from 'fastify'
import { callerOf, checkSite, isSafeMethod, type Caller } from './http/caller.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import type { Context } from './context.ts'
import { tokenOf } from './http/cookies.ts'
import { digestOf, isCsrf, sessionOf, type Session } from './login/sessions.ts'

export interface Authentication {
  readonly caller: Caller
  readonly token: string | null
  readonly session: Session | null
}

declare module 'fastify' {
  interface FastifyRequest {
    standing: Authentication | null
  }
}

/** @throws ConsoleProblem forbidden if the request comes from a page of another site */
export async function authenticate({ host, store, clock }: Context, request: FastifyRequest): Promise<Authentication> {
  const caller = callerOf(host, request.raw)
  checkSite(request.raw, caller)
  const token = tokenOf(request, caller)
  if (token === null) return { caller, token, session: null }
  const digest = digestOf(token)
  const record = await store.call('findSession', digest, clock.wall(), request.headers['x-live'] !== '1')
  const session = record && sessionOf(host.current(), token, record)
  if (record !== null && session === null) await store.call('closeSession', digest)
  return { caller, token, session }
}

/** @param roles null = everybody; empty = every user who is logged in @param opens true if the operation begins a session */
export function guard({ roles, opens = false }: { roles: readonly string[] | null; opens?: boolean }) {
  return async (request: FastifyRequest): Promise<void> => {
    const session = request.standing?.session ?? null
    if (roles !== null && session === null) {
      throw new ConsoleProblem('not_logged_in', 'Not logged in, or the session has expired. Log in again.')
    }
    if (session === null) return
    if (!opens && !isSafeMethod(request.method) && !isCsrf(session, request.headers['x-csrf-token'])) {
      throw new ConsoleProblem('forbidden', 'The x-csrf-token header does not match the session.')
    }
    if (roles !== null && roles.length > 0 && !roles.includes(session.role)) {
      throw new ConsoleProblem('forbidden', `The role ${session.role} may not do this.`)
    }
  }
}
