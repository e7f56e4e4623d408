import type { SharedKey } from './shared-key.ts'

/** The store of the limits of all instances. */
export interface SharedStore {
  /** Keys are spread over several servers by their hash tag. */
  readonly isPartitioned: boolean
  /** Resolves at the first connection, or after a while without one. */
  connected(): Promise<void>
  /** Runs SCRIPT. Rejects when there is no reply in time. */
  run(keys: readonly string[], argument: string): Promise<unknown>
  /**
   * The time since which the store has its data: when it was first asked for a key. Rejects if no reply comes in time.
   * @returns both ms since 1970 by the clock of the store
   */
  since(key: string): Promise<{ readonly since: number, readonly now: number }>
}

/** Number of partitions for keys without groups, if the store is several servers. Each records since when it has its data. */
export const PARTITIONS = 64
export const GROUPS_PARTITION = 'groups'
const EPOCH_KEY = 'gateway:limits'
/** A hash without limits to which every instance reports, so that each knows their number. */
export const INSTANCES_KEY = 'gateway:limits:\ninstances'
const HASH_PREFIX = 'gateway:limits:'

/** The hash that has the limits of a key or group. */
export function hashOf({ id }: SharedKey, partition: string): string {
  return HASH_PREFIX + tagOf(partition) + id
}

/** The key that records how old the data of a partition is. */
export function epochKey(partition: string): string {
  return partition === '' ? EPOCH_KEY : HASH_PREFIX + tagOf(partition)
}

/** Keys with one tag are on one server: https://valkey.io/topics/cluster-spec/#hash-tags */
function tagOf(partition: string): string {
  return partition === '' ? '' : `{${partition}}`
}

/** Makes a store without data record the current time. */
export async function noteEpochs(store: SharedStore): Promise<void> {
  const partitions = store.isPartitioned ? [GROUPS_PARTITION, ...Array(PARTITIONS).keys()] : ['']
  await Promise.all(partitions.map(partition => store.since(epochKey(String(partition)))))
}
