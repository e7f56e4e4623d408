/** One server, a master behind sentinels, or a cluster. Each URL is redis://user:password@host:port/database. */
export type ValkeyAddress = (
  | { readonly url: string }
  | { readonly sentinels: readonly string[], readonly master: string, readonly sentinel_password?: string }
  | { readonly cluster: readonly string[] }
) & { readonly tls?: ValkeyTls }

/** PEM files for rediss://. */
export interface ValkeyTls {
  /** Root certificates; null = the usual ones. */
  readonly ca: string | null
  /** What the gateway shows; null = nothing. */
  readonly pair: { readonly cert: string, readonly key: string } | null
}

/** What several gateways share. */
export interface ClusterConfig {
  /** Where the limits of all gateways are; null = each has its own. */
  readonly valkey: ValkeyAddress | null
  /** While Valkey cannot be reached: `share` = a part of each limit applies here; `refuse` = requests of limited keys get 503. */
  readonly limitsOffline: 'share' | 'refuse'
  /** ms after which Valkey counts as away. */
  readonly valkeyTimeout: number
  /** The URL of the database of ledger and keys, with its password; null = both are local. */
  readonly postgres: string | null
  /** The name of this gateway among the others. */
  readonly instance: string
}
