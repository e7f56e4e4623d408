import { isoTime } from '../base/clock.ts'
import type { Gateway } from '../pipeline/parts/gateway.ts'
import type { Login, Session as SessionResponse } from './api/session.ts'
import type { Caller } from './http/caller.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import type { OperationRequest, Context, Operations } from './context.ts'
import { digestOf, newToken, recordOf, sessionOf, type Session, type VerifiedLogin } from './login/sessions.ts'
import type { SessionRecord } from './store/session-table.ts'
import { urlOf } from './state/texts.ts'

type SessionOperations = Pick<Operations,
  'GET /session' | 'POST /session' | 'DELETE /session' | 'POST /session/single-sign-on' | 'POST /session/logout'>

export function sessionOperations(context: Context): SessionOperations {
  const { host, clock, store, loginVerifier, singleSignOn } = context
  const responseOf = (session: Session | null): SessionResponse => {
    const { version, config } = host.current()
    return {
      version,
      has_users: (config.console?.users.length ?? 0) > 0,
      single_sign_on: config.console?.oidc ? new URL(config.console.oidc.issuer).host : null,
      user: session && {
        name: session.name, role: session.role, expires_at: isoTime(session.expiresAt),
        has_users: (config.attribution?.user.length ?? 0) > 0, tags: [...config.attribution?.tags.keys() ?? []].sort(),
      },
      docs_url: session && docsUrl(host.current()),
      csrf: session?.csrf ?? null,
    }
  }

  const logIn = async ({ body, caller, token, setToken }: OperationRequest<'POST /session'>): Promise<SessionResponse> => {
    const gateway = host.current()
    const now = clock.wall()
    const { address } = caller
    const proof = await loginVerifier.verify(gateway, body, address, now)
    if (proof === null) {
      const actor = refusedActor(gateway, body)
      gateway.log.warn({ client: address, actor }, 'a login to the console was refused')
      await store.call('note', { actor, at: now, address, action: 'login.refused', subject: null, detail: null })
      const what = 'key' in body ? 'The gateway does not know this API key.' : 'The name or the password is wrong.'
      throw new ConsoleProblem('not_logged_in', what)
    }
    const opened = await openSession(context, caller, token, proof)
    setToken(opened.token)
    return responseOf(opened.session)
  }

  const logOut = async ({ session, token, setToken, caller: { address } }: OperationRequest<'DELETE /session' | 'POST /session/logout'>): Promise<void> => {
    if (token !== null) await store.call('closeSession', digestOf(token))
    if (session !== null) {
      const actor = actorOf({ kind: session.role === 'key' ? 'key' : 'user', name: session.name })
      await store.call('note', { at: clock.wall(), actor, address, action: 'logout', subject: null, detail: null })
    }
    setToken(null)
  }

  return {
    'GET /session': ({ session }) => Promise.resolve(responseOf(session)),
    'POST /session': logIn,
    'POST /session/single-sign-on': async ({ body, caller, setPendingLogin }) => {
      const { url, pending } = await singleSignOn.begin(host.current().config.console, caller, body.return_to)
      setPendingLogin(pending)
      return { url }
    },
    'DELETE /session': async asked => {
      await logOut(asked)
      return null
    },
    'POST /session/logout': async asked => {
      const { session, caller } = asked
      await logOut(asked)
      const idToken = session?.idToken ?? null
      return { url: idToken && await singleSignOn.logoutUrl(host.current().config.console, caller, idToken) }
    },
  }
}

/** @param before the request's token, which becomes invalid; null = none @returns the session, and the token for the browser */
export async function openSession(
  { host, clock, store }: Context, { address }: Caller, before: string | null, login: VerifiedLogin,
): Promise<{ readonly token: string, readonly session: Session | null }> {
  const now = clock.wall()
  if (before !== null) await store.call('closeSession', digestOf(before))
  const token = newToken()
  const record = recordOf(login, token)
  await store.call('openSession', digestOf(token), record, now)
  const detail = 'oidc' in login ? `single sign-on: sub ${login.account.subject}` : null
  await store.call('note', { actor: 'caller' in login && login.caller !== null ? actorOf({ kind: 'key', name: record.name }) : actorOf(record), at: now, address, action: 'login', subject: null, detail })
  return { token, session: sessionOf(host.current(), token, { ...record, createdAt: now, seenAt: now }) }
}

/** @returns null = the documentation is not served, its port is unknown, or its address changes at the next start */
function docsUrl({ config: { docs }, sharedState: { reloads } }: Gateway): string | null {
  return docs === null || reloads.pending.includes('docs.listen') ? null : urlOf(docs.listen, false)
}

function actorOf({ kind, name }: Pick<SessionRecord, 'kind' | 'name'>): string {
  return `${kind === 'key' ? 'key' : 'console'}: ${name}`
}

/** The actor of a refused login. Only known user names are recorded, because a wrong name may be a password. */
function refusedActor({ config }: Gateway, body: Login): string {
  if ('key' in body) return 'key: unknown'
  const isKnown = config.console?.users.some(({ name }) => name === body.name)
  return `console: ${isKnown ? body.name : 'unknown'}`
}
