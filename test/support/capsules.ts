import { CapsuleKeys } from '../../src/base/secrets/capsule-keys.ts'
import { systemClock } from '../../src/base/clock.ts'
import { CapsuleReader, seal } from '../../src/protocols/neutral/capsule.ts'
import type { Capsule, CapsuleAccess, CapsulePlace } from '../../src/protocols/neutral/capsule.ts'

/** Knows the capsules of these tests, and opens as many as come. */
export const CAPSULES: CapsuleAccess = { keys: new CapsuleKeys(systemClock), reserve: () => undefined }

/** @param dropped gets the fields whose capsules are none of these tests */
export function capsuleReader(dropped: string[] = [], reserve = CAPSULES.reserve): CapsuleReader {
  return new CapsuleReader({ ...CAPSULES, reserve }, { drop: field => void dropped.push(field) })
}

export function sealed(place: CapsulePlace, capsule: Partial<Capsule>): string {
  return seal(CAPSULES.keys, place, { id: null, opaque: null, thinking: [], ...capsule }) as string
}

export function opened(place: CapsulePlace, text: unknown): Capsule | null {
  return capsuleReader().open(place, String(text), 'field')
}
