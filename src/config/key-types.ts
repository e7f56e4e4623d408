import type { EditRules } from './edit-types.ts'

export interface Key {
  readonly name: string
  /** SHA-256 of the key, 32 bytes. The key itself is not stored. */
  readonly digest: Buffer
  /** Globs of allowed models; null = all models. */
  readonly models: readonly string[] | null
  readonly limits: Limits | null
  /** Name of the group; absent = none. */
  readonly group?: string
  /** The person or team that is responsible for the key; absent = unknown. */
  readonly owner?: string
  /** The operator's note; absent = none. */
  readonly note?: string
  /** ms since 1970; absent = never. */
  readonly expiresAt?: number
  /** The caller who made the key: the key acts under the caller's name and limits; absent = an operator made it. */
  readonly caller?: string
  /** Tags of each request with the key; absent = none. */
  readonly tags?: ReadonlyMap<string, string>
  /** The first characters of the secret, by which people recognise the key; absent = unknown. */
  readonly prefix?: string
  /** Replaced secrets that are still valid; absent = none. */
  readonly oldSecrets?: readonly OldSecret[]
  /** Names of the checks of its requests; absent = none. */
  readonly checks?: readonly string[]
  /** Names of the hooks of its requests; absent = none. */
  readonly hooks?: readonly string[]
  /** Changes of its requests; absent = none. */
  readonly edit?: EditRules
  /** Line in the configuration file, from 1; absent = the key is not from the file. */
  readonly line?: number
}

export interface Group extends GroupRules {
  /** This group and all groups above it, the nearest first. */
  readonly chain: readonly GroupRules[]
}

export interface GroupRules {
  readonly name: string
  readonly isGroup: true
  readonly parent: string | null
  /** Globs of allowed models; null = all models that the keys allow. */
  readonly models: readonly string[] | null
  readonly limits: Limits | null
  /** Names of the checks of its keys' requests; absent = none. */
  readonly checks?: readonly string[]
  /** Names of the hooks of its keys' requests; absent = none. */
  readonly hooks?: readonly string[]
  /** Changes of its keys' requests; absent = none. */
  readonly edit?: EditRules
  /** Names of this group and the groups below it. The spend of their keys counts for this group. */
  readonly members: readonly string[]
}

export interface OldSecret {
  /** SHA-256 of the secret, 32 bytes. */
  readonly digest: Buffer
  /** Time until which the old secret is valid, in ms since 1970. */
  readonly validUntil: number
}

export interface Limits {
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrent: number | null
  readonly budget: Budget | null
  /** Requests without room wait; absent or null = they are refused. For single models, absent = as for the whole key. */
  readonly queue?: QueueLimits | null
  /** The priority of waiting requests, 0 to 9, 9 first; absent or null = not set. Set for whole keys and groups only. */
  readonly priority?: number | null
  /** Limits of the key for single models, by the glob of the models. */
  readonly models: ReadonlyMap<string, Omit<Limits, 'models'>>
}

export interface QueueLimits {
  /** Maximum ms that a request waits. */
  readonly wait: number
  /** Maximum number of requests that wait for one limit. */
  readonly size: number
}

export interface Budget {
  /** The amount as a decimal string, as the operator wrote it. */
  readonly usd: string
  /** Days and months begin at 00:00 UTC. */
  readonly per: 'day' | 'month' | 'total'
}
