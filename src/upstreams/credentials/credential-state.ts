/** The state of one credential, without its secret. Times in ms since 1970. */
export interface CredentialState {
  /** When the credential was read from its source; null = not yet, or it is in the configuration. */
  readonly fetchedAt: number | null
  /** null = it does not expire, or the time is unknown. */
  readonly expiresAt: number | null
  /** Why its source fails; null = it works. */
  readonly fault: string | null
  /** When a credential of a pool may be used again; null = it may be used now. */
  readonly rest: { readonly until: number, readonly reason: RestReason } | null
  /** The rate limits that the upstream reported last; null = none. */
  readonly rateLimits: RateLimits | null
}

/** `unavailable`: the source of the credential fails. */
export type RestReason = 'rate_limited' | 'refused' | 'unavailable'

/** The rest of one rate limit. */
export interface RemainingRateLimit {
  readonly limit: number
  readonly remaining: number
}

/** The rate limits of a credential as the upstream reported them last. */
export interface RateLimits {
  /** When the upstream reported them, ms since 1970. */
  readonly at: number
  readonly requests: RemainingRateLimit | null
  readonly tokens: RemainingRateLimit | null
}

/** The state of a credential that does not change. */
export const CONSTANT: CredentialState = Object.freeze({ fetchedAt: null, expiresAt: null, fault: null, rest: null, rateLimits: null })
