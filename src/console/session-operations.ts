import type { Gateway } from '../context/gateway.ts'
import type { Login, Session as SessionAnswer } from './api/session.ts'
import type { OperationRequest, Context, Operations } from './context.ts'
import { ConsoleProblem } from './problem.ts'
import { digestOf, newToken, recordOf, sessionOf } from './sessions.ts'
import type { Session } from './sessions.ts'
import type { SessionRecord } from './store/sessions.ts'
import { isoTime, urlOf } from './texts.ts'

type SessionOperations = Pick<Operations, 'GET /session' | 'POST /session' | 'DELETE /session'>

/** Logging in and out, and who is logged in. */
export function sessionOperations(context: Context): SessionOperations {
  const { host, clock, store: desk, loginVerifier: logins } = context
  const answer = (session: Session | null): SessionAnswer => {
    const { version, config } = host.current()
    return {
      version,
      has_users: (config.console?.users.length ?? 0) > 0,
      user: session && { name: session.name, role: session.role, expires_at: isoTime(session.expiresAt) },
      docs_url: session && docsUrl(host.current()),
      csrf: session?.csrf ?? null,
    }
  }

  const logIn = async ({ body, caller, token, setToken }: OperationRequest<'POST /session'>): Promise<SessionAnswer> => {
    const gateway = host.current()
    const now = clock.wall()
    const { address } = caller
    const proof = await logins.verify(gateway, body, address, now)
    if (proof === null) {
      const actor = refusedActor(gateway, body)
      gateway.log.warn({ client: address, actor }, 'a login to the console was refused')
      await desk.call('note', {
        actor, at: now, address, action: 'login.refused', subject: null, detail: null,
      })
      const what = 'key' in body ? 'The gateway does not know this API key.' : 'The name or the password is wrong.'
      throw new ConsoleProblem('not_logged_in', what)
    }
    // The token from before the login must not stay valid.
    if (token !== null) await desk.call('closeSession', digestOf(token))
    const fresh = newToken()
    const record = recordOf(proof)
    await desk.call('openSession', digestOf(fresh), record, now)
    await desk.call('note', {
      actor: actorOf(record), at: now, address, action: 'login', subject: null, detail: null,
    })
    const session = sessionOf(gateway, fresh, { ...record, createdAt: now, seenAt: now })
    setToken(fresh)
    return answer(session)
  }

  return {
    'GET /session': ({ session }) => Promise.resolve(answer(session)),
    'POST /session': logIn,
    'DELETE /session': async ({ session, token, setToken, caller }) => {
      if (token !== null) await desk.call('closeSession', digestOf(token))
      if (session !== null) {
        const actor = actorOf({ kind: session.role === 'key' ? 'key' : 'user', name: session.name })
        const { address } = caller
        await desk.call('note', {
          at: clock.wall(), actor, address, action: 'logout', subject: null, detail: null,
        })
      }
      setToken(null)
      return null
    },
  }
}

/**
 * null where it is not served, nobody here knows at which port, or another address waits for the next start.
 */
function docsUrl({ config: { docs }, sharedState: { reloads } }: Gateway): string | null {
  return docs === null || reloads.pending.includes('docs.listen') ? null : urlOf(docs.listen, false)
}

function actorOf({ kind, name }: Pick<SessionRecord, 'kind' | 'name'>): string {
  return `${kind === 'key' ? 'key' : 'console'}: ${name}`
}

/**
 * Whose login was refused. A wrong field may contain a password, so only known user names are recorded.
 */
function refusedActor({ config }: Gateway, body: Login): string {
  if ('key' in body) return 'key: unknown'
  const isKnown = config.console?.users.some(({ name }) => name === body.name)
  return `console: ${isKnown ? body.name : 'unknown'}`
}
