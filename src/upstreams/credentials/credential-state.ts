/** The state of one credential, without its secret. Times in ms since 1970. */
export interface CredentialState {
  /** When the credential was read from its source; null = not read yet, or constant. */
  readonly fetchedAt: number | null
  /** null = the credential does not expire, or the time is unknown. */
  readonly expiresAt: number | null
  /** Why the source of the credential fails; null = the source works. */
  readonly fault: string | null
  /** The pause of a credential of a pool; null = the credential may be used now. */
  readonly rest: { readonly until: number, readonly reason: RestReason } | null
  /** The rate limits that the upstream last reported; null = none. */
  readonly rateLimits: RateLimits | null
}

/** `unavailable`: the source of the credential fails. */
export type RestReason = 'rate_limited' | 'refused' | 'unavailable'

export interface RemainingRateLimit { readonly limit: number, readonly remaining: number }

/** The rate limits that the upstream last reported. */
export interface RateLimits {
  /** When the upstream reported them, ms since 1970. */
  readonly at: number
  readonly requests: RemainingRateLimit | null
  readonly tokens: RemainingRateLimit | null
}

export const CONSTANT: CredentialState = Object.freeze({ fetchedAt: null, expiresAt: null, fault: null, rest: null, rateLimits: null })
