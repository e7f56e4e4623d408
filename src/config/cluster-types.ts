/** Address of one server, of a master behind sentinels, or of a cluster. URLs have the form redis://user:password@host:port/database. */
export type ValkeyAddress = (
  | { readonly url: string }
  | { readonly sentinels: readonly string[], readonly master: string, readonly sentinel_password?: string }
  | { readonly cluster: readonly string[] }
) & { readonly tls?: ValkeyTls }

/** PEM files for connections to rediss:// URLs. */
export interface ValkeyTls {
  /** Root certificates; null = the default root certificates. */
  readonly ca: string | null
  /** The gateway's client certificate; null = none. */
  readonly pair: { readonly cert: string, readonly key: string } | null
}

export interface ClusterConfig {
  /** The store that contains the limits of all gateways; null = each gateway counts for itself. */
  readonly valkey: ValkeyAddress | null
  /** While Valkey is unreachable: `share` = this gateway applies a share of each limit; `refuse` = keys with limits get 503. */
  readonly limitsOffline: 'share' | 'refuse'
  /** ms after which Valkey counts as unreachable. */
  readonly valkeyTimeout: number
  /** URL of the database for ledger and keys, with the password; null = ledger and keys are local files. */
  readonly postgres: string | null
  readonly instance: string
}
