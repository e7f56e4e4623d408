import { LinkedList, type ListNode } from './linked-list.ts'

/** Priorities are 0 to 9; 9 is served first. */
export const PRIORITIES = 10
export const DEFAULT_PRIORITY = 5

interface Lane<T> {
  readonly name: string
  readonly items: LinkedList<T>
  turn: ListNode<Lane<T>> | null
}

interface Level<T> {
  readonly lanes: Map<string, Lane<T>>
  /** The lanes in the order of their turns. */
  readonly turns: LinkedList<Lane<T>>
}

/** Where an item waits. */
export interface Place<T> {
  readonly level: Level<T>
  readonly lane: Lane<T>
  readonly node: ListNode<T>
}

/**
 * Items in the order in which they are served: by priority, then in turn between the lanes (keys) of one priority, then by arrival in the
 * lane. Each operation takes constant time, except `victim`.
 */
export class FairQueue<T> {
  readonly #levels: readonly Level<T>[] = Array.from({ length: PRIORITIES }, () => ({ lanes: new Map<string, Lane<T>>(), turns: new LinkedList<Lane<T>>() }))
  size = 0

  /** @param priority a whole number from 0 to 9 */
  add(item: T, priority: number, name: string): Place<T> {
    const level = this.#levels[priority] as Level<T>
    let lane = level.lanes.get(name)
    if (lane === undefined) {
      lane = { name, items: new LinkedList(), turn: null }
      lane.turn = level.turns.push(lane)
      level.lanes.set(name, lane)
    }
    this.size++
    return { level, lane, node: lane.items.push(item) }
  }

  /** The item whose turn it is; null = the queue is empty. */
  first(): T | null {
    for (let priority = PRIORITIES - 1; priority >= 0; priority--) {
      const lane = this.#levels[priority]?.turns.first
      if (lane) return lane.value.items.first?.value ?? null
    }
    return null
  }

  /** Removes an item that is served, so that the next turn is that of another lane. */
  take({ level, lane, node }: Place<T>): void {
    this.remove({ level, lane, node })
    if (lane.turn === null) return
    level.turns.remove(lane.turn)
    lane.turn = level.turns.push(lane)
  }

  /** Removes an item that waits no longer. */
  remove({ level, lane, node }: Place<T>): void {
    this.size--
    lane.items.remove(node)
    if (lane.items.size > 0 || lane.turn === null) return
    level.turns.remove(lane.turn)
    level.lanes.delete(lane.name)
    lane.turn = null
  }

  /**
   * The item that gives its place in a full queue to a new one: the last of the longest lane with the lowest priority. The new item needs a
   * higher priority, or a lane that is shorter by more than one. @returns null = the new item gets no place
   */
  victim(priority: number, name: string): T | null {
    for (let lowest = 0; lowest <= priority; lowest++) {
      const level = this.#levels[lowest] as Level<T>
      let longest: Lane<T> | null = null
      for (const lane of level.lanes.values()) if (lane.items.size > (longest?.items.size ?? 0)) longest = lane
      if (longest === null) continue
      const isFairer = longest.items.size > (level.lanes.get(name)?.items.size ?? 0) + 1
      return lowest < priority || isFairer ? longest.items.last?.value ?? null : null
    }
    return null
  }
}
