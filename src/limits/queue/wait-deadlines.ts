import type { Clock, Timer } from '../../base/clock.ts'
import { LinkedList, type ListNode } from './linked-list.ts'

interface Deadline<T> {
  readonly item: T
  /** On the monotonic clock, ms. */
  readonly at: number
}

export interface DeadlineEntry<T> {
  readonly list: LinkedList<Deadline<T>>
  readonly node: ListNode<Deadline<T>>
}

/** The deadlines of many items with one timer. Equal waits share a list, which is in the order of its deadlines. */
export class WaitDeadlines<T> {
  readonly #clock: Pick<Clock, 'monotonic' | 'setTimeout'>
  readonly #expired: (item: T) => void
  /** The number of different waits is bounded by the configuration. */
  readonly #lists = new Map<number, LinkedList<Deadline<T>>>()
  #timer: Timer | null = null
  #timerAt = Infinity

  constructor(clock: Pick<Clock, 'monotonic' | 'setTimeout'>, expired: (item: T) => void) {
    this.#clock = clock
    this.#expired = expired
  }

  add(item: T, waitMs: number): DeadlineEntry<T> {
    let list = this.#lists.get(waitMs)
    if (list === undefined) {
      list = new LinkedList()
      this.#lists.set(waitMs, list)
    }
    const at = this.#clock.monotonic() + waitMs
    const node = list.push({ item, at })
    this.#arm(at)
    return { list, node }
  }

  remove({ list, node }: DeadlineEntry<T>): void {
    list.remove(node)
  }

  #arm(at: number): void {
    if (at >= this.#timerAt) return
    this.#timer?.cancel()
    this.#timerAt = at
    this.#timer = this.#clock.setTimeout(() => this.#fire(), Math.max(0, at - this.#clock.monotonic()))
  }

  #fire(): void {
    this.#timer = null
    this.#timerAt = Infinity
    const now = this.#clock.monotonic()
    for (const [waitMs, list] of this.#lists) {
      while (list.first !== null && list.first.value.at <= now) {
        const { first } = list
        list.remove(first)
        this.#expired(first.value.item)
      }
      if (list.first !== null) this.#arm(list.first.value.at)
      else this.#lists.delete(waitMs)
    }
  }
}
