/** The state of one credential, without its secret. Times in ms since 1970. */
export interface CredentialState {
  /** When it was read from its source; null = it was not read yet, or it is in the configuration. */
  readonly fetchedAt: number | null
  /** null = it does not expire, or when is unknown. */
  readonly expiresAt: number | null
  /** Why its source fails; null = it does not. */
  readonly fault: string | null
  /** Until when a credential of a pool is not used; null = it is used. */
  readonly rest: { readonly until: number, readonly reason: RestReason } | null
  /** The last that the upstream reported; null = it reported none. */
  readonly rateLimits: RateLimits | null
}

/** `unavailable`: its source fails. */
export type RestReason = 'rate_limited' | 'refused' | 'unavailable'

/** What is left of one rate limit. */
export interface RemainingRateLimit {
  readonly limit: number
  readonly remaining: number
}

/** The rate limits of a credential that an upstream reported last. */
export interface RateLimits {
  /** When it reported them, ms since 1970. */
  readonly at: number
  readonly requests: RemainingRateLimit | null
  readonly tokens: RemainingRateLimit | null
}

/** The state of a credential that does not change. */
export const CONSTANT: CredentialState = Object.freeze({ fetchedAt: null, expiresAt: null, fault: null, rest: null, rateLimits: null })
