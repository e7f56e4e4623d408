import type { Key } from '../config/key-types.ts'
import type { KeyRecord } from './key-record.ts'

/** The owner of each key that has one, by the name of the key. */
export type KeyOwners = ReadonlyMap<string, string>

/**
 * The owners that keys have now, also of revoked ones: their usage stays. Of keys with the same name, the active one
 * counts.
 *
 * @param configured the keys of gateway.yaml
 */
export function ownersOf(configured: readonly Key[], stored: readonly KeyRecord[]): KeyOwners {
  const revokedFirst = stored.toSorted((a, b) => (b.revokedAt === null ? 0 : 1) - (a.revokedAt === null ? 0 : 1))
  const keys = [...revokedFirst.map(({ key }) => key), ...configured]
  return new Map(keys.flatMap(({ name, owner }) => (owner === undefined ? [] : [[name, owner]])))
}
