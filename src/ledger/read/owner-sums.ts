import type { Filter, LedgerReader } from './ledger-reader.ts'
import { add, byGroups, type GroupBy, type RowGroup, type UsageSum } from './usage-sum.ts'

/** Like the reader's `sums`, but also by owner. All sums of a key, even old ones, count for its current owner. @param owners by key name */
export function sumsWithOwners(reader: LedgerReader, filter: Filter, by: readonly GroupBy[], owners: ReadonlyMap<string, string>): UsageSum[] {
  const asked = [...new Set(by.map((name): RowGroup => (name === 'owner' ? 'key' : name)))]
  const merged = new Map<string, UsageSum>()
  for (const sum of reader.sums(filter, asked)) {
    const groups = by.map(name => {
      const value = sum.groups[asked.indexOf(name === 'owner' ? 'key' : name)] ?? null
      return name !== 'owner' || value === null ? value : owners.get(value) ?? null
    })
    const id = JSON.stringify(groups)
    const known = merged.get(id)
    merged.set(id, known === undefined ? { ...sum, groups } : add(known, sum))
  }
  return [...merged.values()].sort(byGroups)
}
