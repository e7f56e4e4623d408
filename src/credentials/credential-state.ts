/** What is known of one credential; nothing of its secret. Times in ms since 1970. */
export interface CredentialState {
  /** When it was read from its source; null = it was not, or is in the configuration. */
  readonly fetchedAt: number | null
  /** null = it has no end that is known. */
  readonly expiresAt: number | null
  /** Why its source fails; null = it does not. */
  readonly fault: string | null
  /** Until when a credential of a pool is not used; null = it is used. */
  readonly rest: { readonly until: number, readonly reason: RestReason } | null
  /** As the upstream said last; null = it did not say. */
  readonly rateLimits: RateLimits | null
}

/** `unavailable`: its source fails. */
export type RestReason = 'rate_limited' | 'refused' | 'unavailable'

/** What is left of one rate limit. */
export interface RemainingRateLimit {
  readonly limit: number
  readonly remaining: number
}

/** What an upstream said last of the rate limits of a credential. */
export interface RateLimits {
  /** When it said that, ms since 1970. */
  readonly at: number
  readonly requests: RemainingRateLimit | null
  readonly tokens: RemainingRateLimit | null
}

/** A credential that is always there. */
export const CONSTANT: CredentialState = Object.freeze({ fetchedAt: null, expiresAt: null, fault: null, rest: null, rateLimits: null })
