import type { Valkey } from '../valkey/valkey.ts'
import type { SharedKey } from './shared-key.ts'

/** The limits of all instances. */
export type SharedStore = Pick<Valkey, 'isPartitioned' | 'connected' | 'run' | 'since'>

/** Partitions of keys without groups, if there are several servers. Each records since when it has its data. */
export const PARTITIONS = 64
export const GROUPS_PARTITION = 'groups'
const EPOCH_KEY = 'gateway:limits'
/** A hash without limits: every instance reports to it, so that each knows their number. */
export const INSTANCES_KEY = 'gateway:limits:\ninstances'
const HASH_PREFIX = 'gateway:limits:'

export function hashOf({ id }: SharedKey, partition: string): string {
  return HASH_PREFIX + tagOf(partition) + id
}

/** Records since when a partition has its data. */
export function epochKey(partition: string): string {
  return partition === '' ? EPOCH_KEY : HASH_PREFIX + tagOf(partition)
}

/** Keys with one tag are on one server: https://valkey.io/topics/cluster-spec/#hash-tags */
function tagOf(partition: string): string {
  return partition === '' ? '' : `{${partition}}`
}

/** Makes a store without data record the time. */
export async function noteEpochs(store: SharedStore): Promise<void> {
  const partitions = store.isPartitioned ? [GROUPS_PARTITION, ...Array(PARTITIONS).keys()] : ['']
  await Promise.all(partitions.map(partition => store.since(epochKey(String(partition)))))
}
