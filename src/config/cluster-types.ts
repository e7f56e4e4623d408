/** One server, a master behind sentinels, or a cluster, as redis://user:password@host:port/database. */
export type ValkeyAddress = (
  | { readonly url: string }
  | { readonly sentinels: readonly string[], readonly master: string, readonly sentinel_password?: string }
  | { readonly cluster: readonly string[] }
) & { readonly tls?: ValkeyTls }

/** PEM files for rediss://. */
export interface ValkeyTls {
  /** Root certificates; null = the default ones. */
  readonly ca: string | null
  /** The gateway's client certificate; null = none. */
  readonly pair: { readonly cert: string, readonly key: string } | null
}

export interface ClusterConfig {
  /** The store of the limits of all gateways; null = each gateway has its own. */
  readonly valkey: ValkeyAddress | null
  /** While Valkey is unreachable: `share` = a share of each limit applies here; `refuse` = limited keys get 503. */
  readonly limitsOffline: 'share' | 'refuse'
  /** ms after which Valkey counts as unreachable. */
  readonly valkeyTimeout: number
  /** URL of the database for ledger and keys, with its password; null = both are local. */
  readonly postgres: string | null
  readonly instance: string
}
