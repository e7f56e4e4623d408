import { crc32 } from 'node:zlib'
import type { Timer } from '../../base/clock.ts'
import type { Pending } from './shared-connection.ts'
import { SharedKey } from './shared-key.ts'
import { GROUPS_PARTITION, PARTITIONS } from './shared-store.ts'
import { idOf, type LimitedKey } from '../../limits/types.ts'

/** The lane of all keys with groups. It is one lane, because only one call at a time can include a group. */
const GROUPS_LANE = 'groups\n'

/** One key, or all keys with groups. One call decides the waiting requests of a lane together. */
export interface Lane {
  /** The store's partition in which the lane's keys are; '' = the store is one server. */
  readonly partition: string
  readonly keys: Set<SharedKey>
  readonly queue: Pending[]
  /** Requests that wait until the spend of a budget is restored. */
  readonly restoring: Pending[]
  isCalling: boolean
  isRestoring: boolean
  flush: Timer | null
}

export class SharedLanes {
  readonly #keys = new Map<string, SharedKey>()
  readonly #lanes = new Map<string, Lane>()
  readonly #isPartitioned: boolean

  /** @param isPartitioned true = the store consists of several servers */
  constructor(isPartitioned: boolean) {
    this.#isPartitioned = isPartitioned
  }

  get keys(): Iterable<SharedKey> {
    return this.#keys.values()
  }

  get all(): Iterable<Lane> {
    return this.#lanes.values()
  }

  key(limited: Pick<LimitedKey, 'name' | 'isGroup'>): SharedKey {
    let key = this.#keys.get(idOf(limited))
    if (key === undefined) {
      key = new SharedKey(limited)
      this.#keys.set(key.id, key)
    }
    return key
  }

  /** @param isAlone true = no group of the key has limits */
  assign(key: SharedKey, isAlone: boolean): void {
    const id = isAlone ? key.id : GROUPS_LANE
    if (key.lane === id) return
    this.#lanes.get(key.lane)?.keys.delete(key)
    key.lane = id
    this.of(key).keys.add(key)
  }

  of({ lane: id }: SharedKey): Lane {
    let lane = this.#lanes.get(id)
    if (lane === undefined) {
      lane = { partition: this.#partitionOf(id), keys: new Set(), queue: [], restoring: [], isCalling: false, isRestoring: false, flush: null }
      this.#lanes.set(id, lane)
    }
    return lane
  }

  #partitionOf(lane: string): string {
    if (!this.#isPartitioned) return ''
    return lane === GROUPS_LANE ? GROUPS_PARTITION : String(crc32(lane) % PARTITIONS)
  }
}
