import type { SharedKey } from './shared-key.ts'
import type { Spend } from '../../limits/types.ts'

/** The spend of all instances in the common ledger. */
export interface CommonSpend {
  /**
   * What all instances spent according to the common ledger; null = there is none.
   * @param names of keys
   * @param since ms since 1970
   */
  readonly spentOf: ((names: readonly string[], since: number) => Promise<readonly NamedSpend[]>) | null
  /** Like `spentOf`, by group instead of key, without the spend of child groups. */
  readonly groupSpentOf: ((groups: readonly string[], since: number) => Promise<readonly NamedSpend[]>) | null
}

interface NamedSpend extends Omit<Spend, 'key'> {
  readonly name: string
}

/** Makes the next call raise the spend in the store to that of the common ledger. @param restores also if the store has no spend */
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

/**
 * Reads the spend of budgets that the store does not know.
 * @param at since when the store has its data, and the time now; ms since 1970
 */
export async function restoreSpend(
  keys: ReadonlySet<SharedKey>, at: { readonly epoch: number, readonly now: number }, common: CommonSpend,
): Promise<void> {
  const unknown = (key: SharedKey) => key.accounts().filter(({ spent, end }) => spent < 0 && end > at.now)
  // The store has all spend of periods that began after it was created.
  const isNew = (key: SharedKey) => unknown(key).every(({ start }) => start >= at.epoch)
  for (const key of keys) if (isNew(key)) key.raiseFloors([], true)
  await raiseToCommonSpend([...keys].filter(key => !isNew(key)), true, common)
}
