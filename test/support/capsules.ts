import { CapsuleKeys } from '../../src/base/secrets/capsule-keys.ts'
import { systemClock } from '../../src/base/clock.ts'
import { CapsuleReader, seal } from '../../src/protocols/neutral/capsule.ts'
import type { Capsule, CapsuleAccess, CapsulePlace } from '../../src/protocols/neutral/capsule.ts'

/** Opens the capsules of these tests, without a limit of memory. */
export const CAPSULES: CapsuleAccess = { keys: new CapsuleKeys(systemClock), reserve: () => undefined }

/** @param dropped gets the fields whose capsules these keys cannot open */
export function capsuleReader(dropped: string[] = [], reserve = CAPSULES.reserve): CapsuleReader {
  return new CapsuleReader({ ...CAPSULES, reserve }, { drop: field => void dropped.push(field) })
}

export function sealed(place: CapsulePlace, capsule: Partial<Capsule>): string {
  return seal(CAPSULES.keys, place, { id: null, opaque: null, thinking: [], ...capsule }) as string
}

export function opened(place: CapsulePlace, text: unknown): Capsule | null {
  return capsuleReader().open(place, String(text), 'field')
}
