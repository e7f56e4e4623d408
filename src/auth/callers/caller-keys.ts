import type { CallerIssuer } from '../../config/caller-types.ts'
import type { Key } from '../../config/key-types.ts'
import type { ActingKey } from '../keyring.ts'
import { callerDigest } from './caller-of.ts'

/** ms for which a key that a caller makes is valid at most: its group can have changed since. */
export const MAX_KEY_LIFETIME = 90 * 86_400_000

/** The entry of `callers` to which the caller with this name belongs. Names of entries have no colon. */
export function issuerOf(caller: string, issuers: readonly CallerIssuer[]): CallerIssuer | null {
  return issuers.find(({ name }) => caller.startsWith(`${name}:`)) ?? null
}

/**
 * A key that a caller has made acts under the name and the limits of the caller, so everything that the caller sends counts together.
 * @returns null = the configuration no longer lets such callers have keys, or no longer gives them this group
 */
export function actingKeyOf(key: Key, issuers: readonly CallerIssuer[]): ActingKey | null {
  const { caller, group } = key
  if (caller === undefined) return { key, maker: null }
  const issuer = issuerOf(caller, issuers)
  if (issuer === null || issuer.keys === 0 || !givesGroup(issuer, group ?? null)) return null
  return { key: { ...key, name: caller, limits: issuer.limits }, maker: callerDigest(caller) }
}

function givesGroup({ groups }: CallerIssuer, group: string | null): boolean {
  if (groups === null) return group === null
  return group !== null && (group === groups.default || [...groups.map.values()].includes(group))
}
