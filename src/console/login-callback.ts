import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { OidcConfig } from '../config/types.ts'
import { callerOf, type Caller } from './http/caller.ts'
import type { Context } from './context.ts'
import { pendingLoginOf, setPendingLogin, setToken, tokenOf } from './http/cookies.ts'
import { callerClaims, callerLoginOf } from './login/console-caller.ts'
import { IdentityProviderError, type LoginFailure } from './login/identity-provider.ts'
import { entriesFor } from './login/roles.ts'
import { openSession } from './session-operations.ts'
import { CALLBACK_PATH, requireOidc } from './login/single-sign-on.ts'

/** Failures for which the login page has a text. */
type FailurePage = LoginFailure | 'no_role' | 'too_many'

/**
 * Serves the page to which the provider sends the browser at the end of a login. The request comes from another site, so it has no session
 * cookie. The cookie of the pending login proves that this browser began the login.
 */
export async function serveLoginCallback(app: FastifyInstance, context: Context): Promise<void> {
  app.addHook('onRequest', app.rateLimit())
  app.get(CALLBACK_PATH, async (request, reply) => {
    const caller = callerOf(context.host, request.raw)
    void reply.header('cache-control', 'no-store')
    const pending = pendingLoginOf(request, caller)
    setPendingLogin(reply, caller, null)
    return reply.redirect(await finishLogin(context, { request, reply, caller, pending }))
  })
}

interface Callback {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly caller: Caller
  readonly pending: string | null
}

/** @returns the path to which the browser is redirected */
async function finishLogin(context: Context, callback: Callback): Promise<string> {
  const { host, clock, store } = context
  const gateway = host.current()
  const { address } = callback.caller
  const refuse = async (page: FailurePage, actor: string, reason: string) => {
    gateway.log.warn({ client: address, actor, reason }, 'a login to the console by single sign-on was refused')
    // Record only failures after a login at the provider, because anybody can cause the other failures. Those are only logged.
    if (page === 'denied' || page === 'no_role') {
      await store.call('note', {
        at: clock.wall(), actor, address, action: 'login.refused', subject: null, detail: `single sign-on: ${reason}`,
      })
    }
    return `/console/?login=${page}`
  }
  try {
    return await logIn(context, callback, requireOidc(gateway.config.console), refuse)
  } catch (error) {
    if (!(error instanceof IdentityProviderError)) throw error
    return refuse(error.failure, 'console: unknown', error.message)
  }
}

async function logIn(
  context: Context, { request, reply, caller, pending }: Callback, oidc: OidcConfig,
  refuse: (page: FailurePage, actor: string, reason: string) => Promise<string>,
): Promise<string> {
  const { host, clock, store, singleSignOn } = context
  const { search } = new URL(request.raw.url ?? '', 'http://console')
  const login = singleSignOn.resume(oidc, search, pending)
  // Limit the attempts, because each attempt makes the gateway send requests to the provider.
  const attempt = { name: null, address: caller.address }
  if (await store.call('beginAttempt', attempt, clock.wall()) > 0) {
    return refuse('too_many', 'console: unknown', 'too many attempts from this address')
  }
  const gateway = host.current()
  const account = await singleSignOn.finish(oidc, search, login, callerClaims(gateway, oidc))
  const entries = entriesFor(oidc, account)
  const callerLogin = entries.length === 0 ? callerLoginOf(gateway, oidc, account.claims) : null
  if (entries.length === 0 && callerLogin === null) return refuse('no_role', `console: ${account.mail ?? account.subject}`, `no role, sub ${account.subject}`)
  await store.call('attemptSucceeded', attempt, clock.wall())
  const { token } = await openSession(context, caller, tokenOf(request, caller), { oidc, account, entries, caller: callerLogin })
  setToken(reply, caller, token)
  return login.returnTo
}
