export interface Key {
  readonly name: string
  /** SHA-256 of the key, 32 bytes. The key itself is not kept. */
  readonly digest: Buffer
  /** Globs; null = all models. */
  readonly models: readonly string[] | null
  readonly limits: Limits | null
  /** The name of its group; absent = it is in none. */
  readonly group?: string
  /** Who is responsible for it; absent = nobody is named. */
  readonly owner?: string
  /** What it is for; absent = nothing is noted. */
  readonly note?: string
  /** From then on it is refused, ms since 1970; absent = never. */
  readonly expiresAt?: number
  /** The first characters of the secret, for people to know it by; absent where they are not known. */
  readonly prefix?: string
  /** Secrets that a rotation has replaced, and that are valid for a while; absent = none. */
  readonly oldSecrets?: readonly OldSecret[]
  /** Where the file has it, from 1; absent for a key that comes from elsewhere. */
  readonly line?: number
}

/** A group of keys, with limits that its keys share. */
export interface Group extends GroupRules {
  /** This group and those above it, the nearest first. */
  readonly chain: readonly GroupRules[]
}

/** What a group asks of its keys. */
export interface GroupRules {
  readonly name: string
  readonly isGroup: true
  readonly parent: string | null
  /** Globs; null = all models of the keys. */
  readonly models: readonly string[] | null
  readonly limits: Limits | null
  /** The names of this group and of those below it: what their keys spend counts here. */
  readonly members: readonly string[]
}

export interface OldSecret {
  /** SHA-256 of the secret, 32 bytes. */
  readonly digest: Buffer
  /** From then on it is refused, ms since 1970. */
  readonly validUntil: number
}

export interface Limits {
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrent: number | null
  readonly budget: Budget | null
  /** Limits of single models (globs) inside the key. */
  readonly models: ReadonlyMap<string, Omit<Limits, 'models'>>
}

export interface Budget {
  /** A decimal string, as the operator wrote it. */
  readonly usd: string
  /** Days and months are UTC. */
  readonly per: 'day' | 'month' | 'total'
}
