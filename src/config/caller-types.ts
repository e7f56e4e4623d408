import type { Limits } from './key-types.ts'

/** An issuer whose tokens callers send in place of a key. */
export interface CallerIssuer {
  /** The name of a caller is this, a colon and the value of its claim. */
  readonly name: string
  /** As the claim `iss` has it. */
  readonly issuer: string
  readonly audience: readonly string[]
  /** The URL of the public keys; null = from the discovery document. */
  readonly jwks: string | null
  /** ms for which outdated keys are used while the issuer is away. */
  readonly jwksGrace: number
  readonly algorithms: readonly string[]
  /** The claim that names the caller: a name, or a path such as `realm_access.roles`. So are the other claims. */
  readonly caller: string
  /** Globs by claim; one of each list must match. */
  readonly require: ReadonlyMap<string, readonly string[]>
  /** null = callers belong to no group. */
  readonly groups: CallerGroups | null
  /** Of each caller. */
  readonly limits: Limits | null
  /** Maximum number of keys that each caller can make in the console. */
  readonly keys: number
}

export interface CallerGroups {
  readonly claim: string
  /** The name of a group by a glob over the claim's values; the first match applies. */
  readonly map: ReadonlyMap<string, string>
  /** null = a caller without a group is refused. */
  readonly default: string | null
}
