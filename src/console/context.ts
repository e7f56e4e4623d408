import type { Clock } from '../base/clock.ts'
import type { MountHost } from '../pipeline/parts/mount.ts'
import type { OperationName, BodyOf, ParamsOf, QueryOf, ResponseOf } from './api/api.ts'
import type { Caller } from './http/caller.ts'
import type { LoginVerifier } from './login/login.ts'
import type { CsvFile } from './reports/csv.ts'
import type { Reports } from './reports/reports.ts'
import type { Session } from './login/sessions.ts'
import type { SingleSignOn } from './login/single-sign-on.ts'
import type { ConsoleStoreClient } from './store/console-store-client.ts'

export interface Context {
  readonly host: MountHost
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>
  readonly store: ConsoleStoreClient
  readonly loginVerifier: LoginVerifier
  readonly singleSignOn: SingleSignOn
  readonly reports: Reports
}

export interface OperationRequest<N extends OperationName> {
  /** The session of the user; null = the user is not logged in. */
  readonly session: Session | null
  readonly caller: Caller
  readonly query: QueryOf<N>
  readonly params: ParamsOf<N>
  readonly body: BodyOf<N>
  /** Sets the cookie with the token; null removes the cookie. */
  setToken(token: string | null): void
  /** Sets a cookie for a login that begins at the identity provider. */
  setPendingLogin(pending: string): void
  /** The token in the request's cookie; null = none. */
  readonly token: string | null
}

type OperationResult<N extends OperationName> = ResponseOf<N> extends undefined ? CsvFile : Promise<ResponseOf<N>>

/** The operations of the API. They throw ConsoleProblem or ReportError. */
export type Operations = { readonly [N in OperationName]: (asked: OperationRequest<N>) => OperationResult<N> }

/** The only key whose requests the user may see; null = the user may see all keys. */
export function ownKey({ session }: { readonly session: Session | null }): string | null {
  return session?.role === 'key' ? session.name : null
}

/** The session of the user, for operations that require a login. */
export function requireSession({ session }: { readonly session: Session | null }): Session {
  if (session !== null) return session
  throw new Error('an operation for those who are logged in was reached by somebody else')
}
