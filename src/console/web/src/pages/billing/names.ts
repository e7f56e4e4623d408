import type { BillingDimension } from '../../../../api/billing.ts'
import { NO_NAME } from '../../components/badges.tsx'
import { visible } from '../../format.ts'
import type { User } from '../../session.ts'

/** What spend can be grouped by. */
const GROUPS: readonly { value: BillingDimension; label: string; ofKeyHolder: boolean }[] = [
  { value: 'key', label: 'Key', ofKeyHolder: false },
  { value: 'model', label: 'Model', ofKeyHolder: true },
  { value: 'upstream', label: 'Upstream', ofKeyHolder: false },
  { value: 'owner', label: 'Owner', ofKeyHolder: false },
  { value: 'group', label: 'Group', ofKeyHolder: false },
  { value: 'protocol', label: 'Protocol', ofKeyHolder: true },
  { value: 'status', label: 'Status', ofKeyHolder: true },
]

/** The dimensions that a role can group by. */
export function groupsFor(role: User['role']): readonly { value: BillingDimension; label: string }[] {
  return GROUPS.filter(({ ofKeyHolder }) => role !== 'key' || ofKeyHolder)
}

/** `key,model` -> `key and model` */
export function groupText(by: string): string {
  return by.split(',').join(' and ')
}

export function labelOf(by: string): string {
  return GROUPS.find(({ value }) => value === by)?.label ?? by
}

const NO_GROUP: Readonly<Record<string, string>> = { ...NO_NAME, protocol: 'No protocol', status: 'No response' }

/** Name of a group in one dimension; null is the group of requests without one. */
export function nameOf(by: string, name: string | null): string {
  return name === null ? NO_GROUP[by] ?? 'none' : visible(name)
}

/** Name of a group in all dimensions: `team-a, gpt-5` */
export function groupName(by: string, names: readonly (string | null)[]): string {
  return by.split(',').map((dimension, n) => nameOf(dimension, names[n] ?? null)).join(', ')
}

/** Identifies a group. */
export function groupId(names: readonly (string | null)[]): string {
  return JSON.stringify(names)
}
