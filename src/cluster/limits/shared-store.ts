import type { Valkey } from '../valkey/valkey.ts'
import type { SharedKey } from './shared-key.ts'

/** The store with the limits of all instances. */
export type SharedStore = Pick<Valkey, 'isPartitioned' | 'connected' | 'run' | 'since'>

/** Number of partitions for keys without groups, if the store is several servers. Each partition records when its data begin. */
export const PARTITIONS = 64
export const GROUPS_PARTITION = 'groups'
const EPOCH_KEY = 'gateway:limits'
/** A hash without limits to which every instance reports, so that each instance knows the number of instances. */
export const INSTANCES_KEY = 'gateway:limits:\ninstances'
const HASH_PREFIX = 'gateway:limits:'

export function hashOf({ id }: SharedKey, partition: string): string {
  return HASH_PREFIX + tagOf(partition) + id
}

/** @returns the store's key that records when the data of a partition begin */
export function epochKey(partition: string): string {
  return partition === '' ? EPOCH_KEY : HASH_PREFIX + tagOf(partition)
}

/** The hash tag of a partition: keys with the same tag are on the same server, https://valkey.io/topics/cluster-spec/#hash-tags */
function tagOf(partition: string): string {
  return partition === '' ? '' : `{${partition}}`
}

/** Makes a store without data record the time at which its data begin. */
export async function noteEpochs(store: SharedStore): Promise<void> {
  const partitions = store.isPartitioned ? [GROUPS_PARTITION, ...Array(PARTITIONS).keys()] : ['']
  await Promise.all(partitions.map(partition => store.since(epochKey(String(partition)))))
}
