export interface Key {
  readonly name: string
  /** SHA-256 of the key, 32 bytes. The key itself is not stored. */
  readonly digest: Buffer
  /** Globs; null = all models. */
  readonly models: readonly string[] | null
  readonly limits: Limits | null
  /** absent = none */
  readonly group?: string
  /** Who is responsible for the key; absent = unknown. */
  readonly owner?: string
  /** absent = none */
  readonly note?: string
  /** ms since 1970; absent = never. */
  readonly expiresAt?: number
  /** The first characters of the secret, so that people recognize it; absent = unknown. */
  readonly prefix?: string
  /** Replaced secrets that are still valid; absent = none. */
  readonly oldSecrets?: readonly OldSecret[]
  /** Line in the file, from 1; absent = not from the file. */
  readonly line?: number
}

export interface Group extends GroupRules {
  /** This group and the groups above it, the nearest first. */
  readonly chain: readonly GroupRules[]
}

export interface GroupRules {
  readonly name: string
  readonly isGroup: true
  readonly parent: string | null
  /** Globs; null = all models of the keys. */
  readonly models: readonly string[] | null
  readonly limits: Limits | null
  /** This group and those below it: the spend of their keys counts here. */
  readonly members: readonly string[]
}

export interface OldSecret {
  /** SHA-256 of the secret, 32 bytes. */
  readonly digest: Buffer
  /** ms since 1970 */
  readonly validUntil: number
}

export interface Limits {
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrent: number | null
  readonly budget: Budget | null
  /** Limits of the key for single models, by glob. */
  readonly models: ReadonlyMap<string, Omit<Limits, 'models'>>
}

export interface Budget {
  /** A decimal string, as the operator wrote it. */
  readonly usd: string
  /** Days and months are UTC. */
  readonly per: 'day' | 'month' | 'total'
}
