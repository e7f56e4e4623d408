/** What a check finds: credentials, or data of persons. */
export type FindKind = 'secrets' | 'email' | 'card' | 'iban' | 'phone' | 'ssn' | 'ip'

/** A rule about the texts of requests. */
export interface CheckConfig {
  readonly name: string
  /** Empty = the check does not search. */
  readonly find: readonly FindKind[]
  /** The most tokens of a prompt; null = the check does not count. */
  readonly size: number | null
  readonly action: 'refuse' | 'mask' | 'log'
  /** true = applies to all requests. */
  readonly all: boolean
}
