import type { ResponseOf } from '../../api.ts'
import { visible } from '../../format.ts'

export type Group = ResponseOf<'GET /billing'>['by']

export const GROUPS: readonly { value: Group; label: string }[] = [
  { value: 'key', label: 'Key' },
  { value: 'model', label: 'Model' },
  { value: 'upstream', label: 'Upstream' },
]

const NOBODY = { key: 'without a key', model: 'without a model', upstream: 'no upstream' } as const

/** What a group is called; null is the one of the requests that had none. */
export function nameOf(by: Group, name: string | null): string {
  return name === null ? NOBODY[by] : visible(name)
}
