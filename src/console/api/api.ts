import { Type, type Static, type TSchema } from 'typebox'
import { Billing, BudgetQuery, Budgets, GroupQuery, PageQuery, Statement, StatementQuery } from './billing.ts'
import { Bodies } from './bodies.ts'
import { Audit, Callers, KeyLookup, KeyChange, KeyOwner, Keys, CreatedKey, NewKey, NewOwnKey, OwnKey, OwnKeys, Rotation } from './keys.ts'
import { LogConditions, LogQuery, Logs, RequestDetailsList } from './logs.ts'
import { Live, Panel, SLICES, Upstreams } from './panel.ts'
import { Configuration, Explanation, Models, ExplainRequest, Routes } from './routes.ts'
import { Login, Logout, Redirect, Session, SingleSignOn } from './session.ts'
import { StrictObject, Name, Range, StringEnum, type Role } from './shapes.ts'
import { UpstreamDetails } from './upstream.ts'

/**
 * The API of the console. The server derives routes, checks and the OpenAPI description from this table. The pages derive their types from
 * it.
 */

/** An operation of the API. It responds with JSON; if `response` is null, it responds with CSV. */
export interface Operation {
  readonly summary: string
  readonly tag: 'session' | 'panel' | 'billing' | 'logs' | 'keys' | 'routes'
  /** Who may call the operation; null = everybody. A user with the role `key` sees only data of the own key, or of the caller. */
  readonly roles: readonly Role[] | null
  readonly params?: TSchema
  readonly query?: TSchema
  readonly body?: TSchema
  readonly status?: 201 | 204
  readonly response: TSchema | null
}

const ALL: readonly Role[] = ['admin', 'viewer', 'key']
const READERS: readonly Role[] = ['admin', 'viewer']
const ADMINS: readonly Role[] = ['admin']

const KeyParams = StrictObject({ name: Name })
/** The name of an issuer and that of the caller at it. */
const CallerParams = StrictObject({ name: Type.String({ maxLength: 512 }) })

export const API = {
  'GET /session': { summary: 'Who is logged in', tag: 'session', roles: null, response: Session },
  'POST /session': { summary: 'Log in', tag: 'session', roles: null, body: Login, status: 201, response: Session },
  'DELETE /session': { summary: 'Log out', tag: 'session', roles: null, status: 204, response: Type.Null() },
  'POST /session/single-sign-on': {
    summary: 'Log in by single sign-on: where the browser goes', tag: 'session', roles: null, body: SingleSignOn, response: Redirect,
  },
  'POST /session/logout': { summary: 'Log out, also of the identity provider', tag: 'session', roles: null, response: Logout },
  'GET /live': { summary: 'The current state: running requests and alerts', tag: 'panel', roles: ALL, response: Live },
  'GET /panel': {
    summary: 'Figures of a time range and of the range before it', tag: 'panel', roles: ALL,
    query: StrictObject({
      ...Range,
      slice: Type.Optional(StringEnum(SLICES, 'minute: 24 hours at most; hour: 31 days at most. Default: hour up to 3 days, else day')),
    }),
    response: Panel,
  },
  'GET /upstreams': {
    summary: 'Health and share of requests of each upstream', tag: 'panel', roles: READERS,
    query: StrictObject(Range), response: Upstreams,
  },
  'GET /upstreams/:name': {
    summary: 'One upstream: why circuits are open, their changes, outcomes, latency, failovers', tag: 'panel', roles: READERS,
    params: StrictObject({ name: Name }), query: StrictObject(Range), response: UpstreamDetails,
  },
  'GET /billing': {
    summary: 'Cost by day and group; for key holders by model',
    tag: 'billing', roles: ALL, query: StrictObject({ ...GroupQuery, ...PageQuery }), response: Billing,
  },
  'GET /billing.csv': {
    summary: 'The groups of GET /billing as CSV', tag: 'billing', roles: ALL,
    query: StrictObject(GroupQuery), response: null,
  },
  'GET /budgets': { summary: 'Budgets and how much is spent', tag: 'billing', roles: ALL, query: BudgetQuery, response: Budgets },
  'GET /statement': {
    summary: 'Statement of a key, an owner, an end user or a tag for one month; key holders can leave out the key', tag: 'billing', roles: ALL,
    query: StatementQuery,
    response: Statement,
  },
  'GET /logs': { summary: 'Ended requests, filtered, by page', tag: 'logs', roles: ALL, query: LogQuery, response: Logs },
  'GET /logs.csv': {
    summary: 'All ended requests that match the filters, as CSV', tag: 'logs', roles: ALL,
    query: StrictObject(LogConditions), response: null,
  },
  'GET /logs/:id': {
    summary: 'Details of one request', tag: 'logs', roles: ALL,
    params: StrictObject({ id: Type.String({ minLength: 1, maxLength: 256 }) }), response: RequestDetailsList,
  },
  'GET /logs/:id/bodies': {
    summary: 'Bodies that log.bodies has kept of one request; each access is in the audit list', tag: 'logs', roles: ['admin', 'key'],
    params: StrictObject({ id: Type.String({ minLength: 1, maxLength: 256 }) }), response: Bodies,
  },
  'GET /filters': {
    summary: 'Names in the recent ledger, for the choices of filters', tag: 'logs', roles: ALL,
    response: StrictObject({
      keys: Type.Array(Name), models: Type.Array(Name), upstreams: Type.Array(Name),
      owners: Type.Array(Name, { description: 'Owners of keys, used or not; empty for key holders' }),
    }),
  },
  'GET /own': { summary: 'Models and limits of the own key', tag: 'keys', roles: ['key'], response: OwnKey },
  'GET /own/keys': { summary: 'The keys that the caller has made for itself', tag: 'keys', roles: ['key'], response: OwnKeys },
  'POST /own/keys': {
    summary: 'Make a key for oneself; only callers who log in by single sign-on', tag: 'keys', roles: ['key'],
    body: NewOwnKey, status: 201, response: CreatedKey,
  },
  'DELETE /own/keys/:label': {
    summary: 'Revoke a key that the caller has made', tag: 'keys', roles: ['key'],
    params: StrictObject({ label: Name }), status: 204, response: Type.Null(),
  },
  'GET /keys': { summary: 'All keys with their use', tag: 'keys', roles: READERS, response: Keys },
  'POST /keys': { summary: 'Create a key', tag: 'keys', roles: ADMINS, body: NewKey, status: 201, response: CreatedKey },
  'POST /keys/find': { summary: 'Find the name of a key', tag: 'keys', roles: ADMINS, body: KeyLookup, response: KeyOwner },
  'PATCH /keys/:name': {
    summary: 'Change the models, limits, owner, note or expiry of a created key', tag: 'keys', roles: ADMINS,
    params: KeyParams, body: KeyChange, status: 204, response: Type.Null(),
  },
  'POST /keys/:name/rotate': {
    summary: 'Replace the secret of a created key; the old one works until the grace is over', tag: 'keys', roles: ADMINS,
    params: KeyParams, body: Rotation, status: 201, response: CreatedKey,
  },
  'DELETE /keys/:name': {
    summary: 'Revoke a created key, or block a key of gateway.yaml', tag: 'keys', roles: ADMINS,
    params: KeyParams, status: 204, response: Type.Null(),
  },
  'POST /keys/:name/unblock': {
    summary: 'Unblock a key of gateway.yaml', tag: 'keys', roles: ADMINS,
    params: KeyParams, status: 204, response: Type.Null(),
  },
  'GET /callers': {
    summary: 'The callers in the ledger: who they are, what they may do, and what they cost', tag: 'keys', roles: READERS,
    query: StrictObject({ search: Type.Optional(Type.String({ maxLength: 256, description: 'Only callers with this text in the name' })) }),
    response: Callers,
  },
  'POST /callers/:name/block': {
    summary: 'Refuse a caller and the keys that it has made', tag: 'keys', roles: ADMINS,
    params: CallerParams, status: 204, response: Type.Null(),
  },
  'POST /callers/:name/unblock': {
    summary: 'Admit a blocked caller again', tag: 'keys', roles: ADMINS,
    params: CallerParams, status: 204, response: Type.Null(),
  },
  'GET /audit': {
    summary: 'Audit list: who changed what', tag: 'keys', roles: READERS,
    query: StrictObject({ before: Type.Optional(Type.Integer()) }), response: Audit,
  },
  'GET /routes': { summary: 'The active route table', tag: 'routes', roles: READERS, response: Routes },
  'GET /models': { summary: 'Models and their prices; for key holders the models of the key', tag: 'routes', roles: ALL, response: Models },
  'POST /explain': {
    summary: 'Explain where a request would go, and why', tag: 'routes',
    roles: READERS, body: ExplainRequest, response: Explanation,
  },
  'GET /configuration': {
    summary: 'The active configuration, with secrets masked', tag: 'routes', roles: READERS, response: Configuration,
  },
} as const satisfies Record<string, Operation>

export type Api = typeof API
export type OperationName = keyof Api

/** Operations that need neither a session nor a token, because they begin a session. */
export const BEGINNERS: ReadonlySet<OperationName> = new Set(['POST /session', 'POST /session/single-sign-on'])

type Shape<N extends OperationName, Part extends string> =
  Api[N] extends Readonly<Record<Part, infer S extends TSchema>> ? Static<S> : undefined
export type QueryOf<N extends OperationName> = Shape<N, 'query'>
export type ParamsOf<N extends OperationName> = Shape<N, 'params'>
export type BodyOf<N extends OperationName> = Shape<N, 'body'>
export type ResponseOf<N extends OperationName> = Shape<N, 'response'>
