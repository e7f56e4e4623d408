import type { Filter, LedgerReader } from './ledger-reader.ts'
import { add, byGroups } from './usage-sum.ts'
import type { GroupBy, RowGroup, UsageSum } from './usage-sum.ts'

/**
 * Like `sums` of the reader, also by owner. The sums of a key, past ones included, belong to its current owner, as in the
 * billing of the console.
 *
 * @param owners by the name of the key
 */
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
