export interface Key {
  readonly name: string
  /** SHA-256 of the key, 32 bytes. The key itself is not stored. */
  readonly digest: Buffer
  /** Globs; null = all models. */
  readonly models: readonly string[] | null
  readonly limits: Limits | null
  /** The name of its group; absent = none. */
  readonly group?: string
  /** Who is responsible for it; absent = unknown. */
  readonly owner?: string
  /** What it is for; absent = no note. */
  readonly note?: string
  /** When it expires, ms since 1970; absent = never. */
  readonly expiresAt?: number
  /** The first characters of the secret, so that people recognize it; absent = unknown. */
  readonly prefix?: string
  /** Secrets that a rotation has replaced and that are still valid; absent = none. */
  readonly oldSecrets?: readonly OldSecret[]
  /** Its line in the file, from 1; absent = not from the file. */
  readonly line?: number
}

/** A group of keys, with limits that its keys share. */
export interface Group extends GroupRules {
  /** This group and the groups above it, the nearest first. */
  readonly chain: readonly GroupRules[]
}

/** The rules that a group applies to its keys. */
export interface GroupRules {
  readonly name: string
  readonly isGroup: true
  readonly parent: string | null
  /** Globs; null = all models of the keys. */
  readonly models: readonly string[] | null
  readonly limits: Limits | null
  /** The names of this group and of those below it: the spend of their keys counts here. */
  readonly members: readonly string[]
}

export interface OldSecret {
  /** SHA-256 of the secret, 32 bytes. */
  readonly digest: Buffer
  /** When it expires, ms since 1970. */
  readonly validUntil: number
}

export interface Limits {
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrent: number | null
  readonly budget: Budget | null
  /** Limits of the key for single models (globs). */
  readonly models: ReadonlyMap<string, Omit<Limits, 'models'>>
}

export interface Budget {
  /** A decimal string, as the operator wrote it. */
  readonly usd: string
  /** Days and months are UTC. */
  readonly per: 'day' | 'month' | 'total'
}
