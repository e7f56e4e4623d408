import type { Key } from '../config/key-types.ts'
import type { KeyRecord } from './key-record.ts'

/** By the name of the key; keys without an owner are absent. */
export type KeyOwners = ReadonlyMap<string, string>

/** Revoked keys are included, because their usage stays. Of keys with the same name, the active one counts. */
export function ownersOf(configured: readonly Key[], stored: readonly KeyRecord[]): KeyOwners {
  const revokedFirst = stored.toSorted((a, b) => (b.revokedAt === null ? 0 : 1) - (a.revokedAt === null ? 0 : 1))
  const keys = [...revokedFirst.map(({ key }) => key), ...configured]
  return new Map(keys.flatMap(({ name, owner }) => (owner === undefined ? [] : [[name, owner]])))
}
