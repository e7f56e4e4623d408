import type { Clock, WallTime } from '../base/clock.ts'

export type StoreName = 'valkey' | 'postgres'

export interface StoreState {
  readonly name: StoreName
  /** Why writes fail; null = writes succeed. */
  readonly failure: string | null
  /** When writes began to fail or, if they succeed, began to succeed. */
  readonly since: WallTime
}

/** The states of the stores that gateways share. A store has a state after its first write. */
export class StoreStates {
  readonly #clock: Pick<Clock, 'wall'>
  readonly #states = new Map<StoreName, StoreState>()

  constructor(clock: Pick<Clock, 'wall'>) {
    this.#clock = clock
  }

  get all(): StoreState[] {
    return [...this.#states.values()]
  }

  /** Call this after each write. @param failure null = the write succeeded */
  report(name: StoreName, failure: string | null): void {
    const known = this.#states.get(name)
    const isSame = known !== undefined && (known.failure === null) === (failure === null)
    this.#states.set(name, { name, failure, since: isSame ? known.since : this.#clock.wall() })
  }
}
