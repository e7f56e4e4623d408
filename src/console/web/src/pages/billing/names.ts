import type { ResponseOf } from '../../api.ts'
import { NO_NAME } from '../../components/badges.tsx'
import { visible } from '../../format.ts'

export type Group = ResponseOf<'GET /billing'>['by']

export const GROUPS: readonly { value: Group; label: string }[] = [
  { value: 'key', label: 'Key' },
  { value: 'model', label: 'Model' },
  { value: 'upstream', label: 'Upstream' },
]

/** Name of a group; null is the group of requests without one. */
export function nameOf(by: Group, name: string | null): string {
  return name === null ? NO_NAME[by] : visible(name)
}
