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

/** What the console's operations use. */
export interface Context {
  readonly host: MountHost
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>
  readonly store: ConsoleStoreClient
  readonly loginVerifier: LoginVerifier
  readonly singleSignOn: SingleSignOn
  readonly reports: Reports
}

/** A permitted request to an operation. */
export interface OperationRequest<N extends OperationName> {
  /** null = nobody is logged in, and the operation is for everybody. */
  readonly session: Session | null
  readonly caller: Caller
  readonly query: QueryOf<N>
  readonly params: ParamsOf<N>
  readonly body: BodyOf<N>
  /** Sets the session's token in the browser; null = removes it. */
  setToken(token: string | null): void
  /** Begins a login at the identity provider: sets the pending login in the browser. */
  setPendingLogin(pending: string): void
  /** The token that came with the request. */
  readonly token: string | null
}

type OperationResult<N extends OperationName> = ResponseOf<N> extends undefined
  ? CsvFile
  : Promise<ResponseOf<N>>

/** The implementation of each operation. They throw ConsoleProblem or ReportError. */
export type Operations = { readonly [N in OperationName]: (asked: OperationRequest<N>) => OperationResult<N> }

/** The only key whose requests the user may see; null = the user may see all. */
export function ownKey({ session }: { readonly session: Session | null }): string | null {
  return session?.role === 'key' ? session.name : null
}

/** The session of an operation that requires one. */
export function requireSession({ session }: { readonly session: Session | null }): Session {
  if (session === null) {
    throw new Error('an operation for those who are logged in was reached by somebody else')
  }
  return session
}
