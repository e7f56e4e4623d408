import { ownersOf } from '../auth/key-owners.ts'
import type { KeyOwners } from '../auth/key-owners.ts'
import type { Context } from './context.ts'

/** The owners of all keys. */
export async function keyOwners({ host, store }: Pick<Context, 'host' | 'store'>): Promise<KeyOwners> {
  const { config, keyStore } = host.current()
  return ownersOf(config.keys, keyStore === null ? [] : (await store.call('storedKeys')).keys)
}
