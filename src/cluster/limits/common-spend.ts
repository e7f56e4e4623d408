import type { SharedKey } from './shared-key.ts'
import type { ClusterDaySpend } from '../ledger/cluster-spend.ts'

export interface CommonSpend {
  /** Spend of all instances by key, from the ledger in PostgreSQL; null = there is none. @param since ms since 1970 */
  readonly spentOf: ((names: readonly string[], since: number) => Promise<readonly ClusterDaySpend[]>) | null
  /** Like `spentOf`, by group, without the spend of the groups below. */
  readonly groupSpentOf: ((groups: readonly string[], since: number) => Promise<readonly ClusterDaySpend[]>) | null
}

/** Makes the next call raise the store's spend to the spend in PostgreSQL. @param restores true = also if the store has no spend yet */
export async function raiseToCommonSpend(
  keys: readonly SharedKey[], restores: boolean, { spentOf, groupSpentOf }: CommonSpend,
): Promise<void> {
  const accounts = keys.flatMap(key => key.accounts())
  if (accounts.length === 0) return
  const since = Math.max(0, Math.min(...accounts.map(({ start }) => start)))
  const [groups, own] = [keys.filter(({ isGroup }) => isGroup), keys.filter(({ isGroup }) => !isGroup)]
  const spent = await spentOf?.(own.map(({ name }) => name), since) ?? null
  const groupSpent = groups.length === 0 ? [] : await groupSpentOf?.([...new Set(groups.flatMap(({ members }) => members))], since) ?? null
  for (const key of keys) {
    const rows = key.isGroup ? groupSpent?.filter(({ name }) => key.members.includes(name)) : spent?.filter(({ name }) => name === key.name)
    key.raiseFloors(rows ?? key.localSpend, restores)
  }
}

/** Restores the spend of budgets that are unknown in the store. @param at ms since 1970; `epoch`: when the store's data begin */
export async function restoreSpend(
  keys: ReadonlySet<SharedKey>, at: { readonly epoch: number, readonly now: number }, common: CommonSpend,
): Promise<void> {
  const unknown = (key: SharedKey) => key.accounts().filter(({ spent, end }) => spent < 0 && end > at.now)
  // Restore no past spend for periods that began after the store's data, because the store has counted all spend in them.
  const isNew = (key: SharedKey) => unknown(key).every(({ start }) => start >= at.epoch)
  for (const key of keys) if (isNew(key)) key.raiseFloors([], true)
  await raiseToCommonSpend([...keys].filter(key => !isNew(key)), true, common)
}
