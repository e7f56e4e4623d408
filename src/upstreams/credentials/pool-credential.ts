import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { GatewayError, credentialUnavailable, upstreamRateLimited } from '../../base/errors.ts'
import { CONSTANT, type CredentialState, type RestReason } from './credential-state.ts'
import type { Authorization, Credential, HeaderList, CredentialRefusal, UnauthorizedRequest } from './credential.ts'
import { RateLimitWindow } from './rate-limit-window.ts'

const DEFAULT_REST_MS = 5_000
const MAX_REST_MS = 10 * 60_000
const FIRST_REFUSED_REST_MS = 30_000
const MAX_REFUSED_REST_MS = 10 * 60_000
const UNAVAILABLE_REST_MS = 5_000

export interface CredentialOptions {
  readonly clock: Clock
  readonly log: Logger
  /** The upstream's name, for the log. */
  readonly upstream: string
}

/**
 * Several credentials of one upstream, which requests use in turn. If the upstream refuses a credential or its rate limit is reached, only
 * that credential is paused, and the request uses the next one. A credential near its rate limit is used only if no other is available.
 */
export class PoolCredential implements Credential {
  readonly refusalStatuses = new Set([401, 402, 403, 429])
  readonly #members: readonly Member[]
  readonly #options: CredentialOptions
  #next = 0

  constructor(members: readonly Credential[], options: CredentialOptions) {
    this.#members = members.map((credential, index) => new Member(credential, index))
    this.#options = options
  }

  authorize(refused: readonly Authorization[]): Authorization | Promise<Authorization> {
    const renewable = refused.at(-1)
    if (renewable instanceof PoolAuthorization && renewable.isRenewed) return this.#authorizeWith(renewable.member, refused)
    const member = this.#choose(refused)
    if (member === null) throw this.#noneLeft()
    return this.#authorizeWith(member, refused)
  }

  recordRefusal(refused: readonly Authorization[], refusal: CredentialRefusal): boolean {
    const last = refused.at(-1)
    if (!(last instanceof PoolAuthorization)) return false
    const { member } = last
    const ofMember = innerOf(refused, member)
    if (member.credential.refusalStatuses.has(refusal.status) && member.credential.recordRefusal(ofMember, refusal)) {
      last.isRenewed = true
      return true
    }
    this.#rest(member, refusal)
    return this.#choose(refused, false) !== null
  }

  responded(authorization: Authorization, status: number, headers: HeaderList): void {
    if (!(authorization instanceof PoolAuthorization)) return
    const { clock } = this.#options
    const { member, inner } = authorization
    member.window.update(headers, clock.monotonic(), clock.wall())
    member.credential.responded?.(inner, status, headers)
    if (status < 400) member.refusals = 0
  }

  states(): readonly CredentialState[] {
    const { clock } = this.#options
    const now = clock.monotonic()
    const wall = clock.wall()
    return this.#members.map(({ credential, window, restsUntil, restReason }) => ({
      ...credential.states()[0] ?? CONSTANT,
      rest: restsUntil <= now ? null : { until: wall + restsUntil - now, reason: restReason },
      rateLimits: window.limits,
    }))
  }

  close(): void {
    for (const { credential } of this.#members) credential.close()
  }

  #authorizeWith(member: Member, refused: readonly Authorization[]): Authorization | Promise<Authorization> {
    try {
      const inner = member.credential.authorize(innerOf(refused, member))
      if (!(inner instanceof Promise)) return new PoolAuthorization(member, inner)
      return inner.then(fetched => new PoolAuthorization(member, fetched), (error: unknown) => this.#withoutMember(member, refused, error))
    } catch (error) {
      return this.#withoutMember(member, refused, error)
    }
  }

  /** Pauses a member whose source fails, and continues with another member. */
  #withoutMember(member: Member, refused: readonly Authorization[], error: unknown): Authorization | Promise<Authorization> {
    member.restsUntil = this.#options.clock.monotonic() + UNAVAILABLE_REST_MS
    member.restReason = 'unavailable'
    const other = this.#choose(refused)
    if (other === null) throw error
    return this.#authorizeWith(other, refused)
  }

  /** @returns the next member that is neither paused nor refused for this request @param isTaken true = the next call starts after it */
  #choose(refused: readonly Authorization[], isTaken = true): Member | null {
    const now = this.#options.clock.monotonic()
    const inTurn = [...this.#members.slice(this.#next), ...this.#members.slice(0, this.#next)]
    const awake = inTurn.filter(member => member.restsUntil <= now && !refused.some(each => isOf(each, member)))
    const chosen = awake.find(({ window }) => !window.isLow(now)) ?? awake[0] ?? null
    if (chosen !== null && isTaken) this.#next = (chosen.index + 1) % this.#members.length
    return chosen
  }

  #rest(member: Member, { status, retryAfterMs }: CredentialRefusal): void {
    const { clock, log, upstream } = this.#options
    member.restReason = status === 429 ? 'rate_limited' : 'refused'
    const ms = status === 429
      ? Math.min(retryAfterMs ?? DEFAULT_REST_MS, MAX_REST_MS)
      : Math.min(FIRST_REFUSED_REST_MS * 2 ** member.refusals, MAX_REFUSED_REST_MS)
    if (member.restReason === 'refused') member.refusals++
    const now = clock.monotonic()
    const wasAwake = member.restsUntil <= now
    member.restsUntil = Math.max(member.restsUntil, now + ms)
    if (!wasAwake) return
    const line = { upstream, credential: member.index + 1, of: this.#members.length, status, rest_ms: Math.round(ms) }
    log.warn(line, 'credentials: one of the pool is paused')
  }

  #noneLeft(): GatewayError {
    const limited = this.#members.filter(({ restReason }) => restReason === 'rate_limited')
    if (limited.length === 0) return credentialUnavailable('no credential of the pool can be used now: they were refused, or their sources fail')
    const first = Math.min(...limited.map(({ restsUntil }) => restsUntil))
    return upstreamRateLimited(Math.max(0, first - this.#options.clock.monotonic()))
  }
}

class Member {
  readonly credential: Credential
  readonly index: number
  readonly window = new RateLimitWindow()
  /** The member is paused until this time, ms on the monotonic clock. */
  restsUntil = 0
  /** Reason of the current or latest pause. */
  restReason: RestReason = 'rate_limited'
  /** Number of refusals since the last success. */
  refusals = 0

  constructor(credential: Credential, index: number) {
    this.credential = credential
    this.index = index
  }
}

class PoolAuthorization implements Authorization {
  readonly member: Member
  readonly inner: Authorization
  /** true = the credential was refused, and its member has a newer credential. */
  isRenewed = false

  constructor(member: Member, inner: Authorization) {
    this.member = member
    this.inner = inner
  }

  headersFor(request: UnauthorizedRequest, upstream: URL): HeaderList | Promise<HeaderList> {
    return this.inner.headersFor(request, upstream)
  }

  pathFor(path: string): string {
    return this.inner.pathFor?.(path) ?? path
  }
}

function isOf(authorization: Authorization, member: Member): boolean {
  return authorization instanceof PoolAuthorization && authorization.member === member
}

/** @returns the member's own authorizations inside the pool's authorizations */
function innerOf(authorizations: readonly Authorization[], member: Member): Authorization[] {
  return authorizations.flatMap(each => (each instanceof PoolAuthorization && each.member === member ? [each.inner] : []))
}
