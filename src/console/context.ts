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

/** What the console works with. */
export interface Context {
  readonly host: MountHost
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>
  readonly store: ConsoleStoreClient
  readonly loginVerifier: LoginVerifier
  readonly singleSignOn: SingleSignOn
  readonly reports: Reports
}

/** A request that may be answered: who asks, and for what. */
export interface OperationRequest<N extends OperationName> {
  /** null where the operation is for anybody, and nobody is logged in. */
  readonly session: Session | null
  readonly caller: Caller
  readonly query: QueryOf<N>
  readonly params: ParamsOf<N>
  readonly body: BodyOf<N>
  /** Begins a session, or ends it: what the browser keeps of it. */
  setToken(token: string | null): void
  /** Begins a login at the identity provider: what the browser keeps of it. */
  setPendingLogin(pending: string): void
  /** The token that came with the request. */
  readonly token: string | null
}

type OperationResult<N extends OperationName> = ResponseOf<N> extends undefined
  ? CsvFile
  : Promise<ResponseOf<N>>

/** What stands behind each operation of the table. Problems are thrown as ConsoleProblem or ReportError. */
export type Operations = { readonly [N in OperationName]: (asked: OperationRequest<N>) => OperationResult<N> }

/** The only key whose rows may be seen; null for somebody who may see all. */
export function ownKey({ session }: { readonly session: Session | null }): string | null {
  return session?.role === 'key' ? session.name : null
}

/** Of an operation that is not for anybody. */
export function requireSession({ session }: { readonly session: Session | null }): Session {
  if (session === null) {
    throw new Error('an operation for those who are logged in was reached by somebody else')
  }
  return session
}
