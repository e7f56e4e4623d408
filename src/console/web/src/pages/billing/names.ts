import type { BillingDimension } from '../../../../api/billing.ts'
import { NO_NAME } from '../../components/badges.tsx'
import { visible } from '../../format.ts'
import type { User } from '../../session.ts'

interface Dimension { readonly value: BillingDimension, readonly label: string }

/** Dimensions by which spend can be grouped. */
const GROUPS: readonly { value: BillingDimension; label: string; ofKeyHolder: boolean }[] = [
  { value: 'key', label: 'Key', ofKeyHolder: false },
  { value: 'model', label: 'Model', ofKeyHolder: true },
  { value: 'upstream', label: 'Upstream', ofKeyHolder: false },
  { value: 'owner', label: 'Owner', ofKeyHolder: false },
  { value: 'group', label: 'Group', ofKeyHolder: false },
  { value: 'protocol', label: 'Protocol', ofKeyHolder: true },
  { value: 'status', label: 'Status', ofKeyHolder: true },
]

/** The dimensions by which the user can group: those of its role, and what attribution of the configuration reads. */
export function groupsFor({ role, has_users, tags }: User): readonly Dimension[] {
  return [
    ...GROUPS.filter(({ ofKeyHolder }) => role !== 'key' || ofKeyHolder),
    ...has_users ? [{ value: 'user' as const, label: 'User' }] : [],
    ...tags.map(name => ({ value: `tag:${name}` as const, label: labelOf(`tag:${name}`) })),
  ]
}

/** Describes dimensions: `key,model` -> `key and model`. */
export function groupText(by: string): string {
  return by.split(',').map(name => name.replace('tag:', 'tag ')).join(' and ')
}

export function labelOf(by: string): string {
  if (by === 'user') return 'User'
  if (by.startsWith('tag:')) return `Tag ${by.slice('tag:'.length)}`
  return GROUPS.find(({ value }) => value === by)?.label ?? by
}

const NO_GROUP: Readonly<Record<string, string>> = { ...NO_NAME, protocol: 'No protocol', status: 'No response', user: 'No user' }

/** The name of a group in one dimension; null = the group of requests without such a name. */
export function nameOf(by: string, name: string | null): string {
  return name === null ? NO_GROUP[by] ?? (by.startsWith('tag:') ? 'No tag' : 'none') : visible(name)
}

/** The name of a group in all dimensions, such as `team-a, gpt-5`. */
export function groupName(by: string, names: readonly (string | null)[]): string {
  return by.split(',').map((dimension, n) => nameOf(dimension, names[n] ?? null)).join(', ')
}

/** A text that identifies a group. */
export function groupId(names: readonly (string | null)[]): string {
  return JSON.stringify(names)
}
