import type { Context } from './context.ts'
import type { KeyOwners } from './reports/reports.ts'

/**
 * The owners of all keys, also of revoked ones: their usage stays.
 * @returns by the name of the key; of keys with the same name, the one in force counts
 */
export async function keyOwners({ host, store }: Pick<Context, 'host' | 'store'>): Promise<KeyOwners> {
  const { config, keyStore } = host.current()
  const stored = keyStore === null ? [] : (await store.call('storedKeys')).keys
  const revokedFirst = stored.toSorted((a, b) => (b.revokedAt === null ? 0 : 1) - (a.revokedAt === null ? 0 : 1))
  const keys = [...revokedFirst.map(({ key }) => key), ...config.keys]
  return new Map(keys.flatMap(({ name, owner }) => (owner === undefined ? [] : [[name, owner]])))
}
