import type { Clock, WallTime } from '../base/clock.ts'

export type StoreName = 'valkey' | 'postgres'

export interface StoreState {
  readonly name: StoreName
  /** Why writes fail; null = they succeed. */
  readonly failure: string | null
  /** When writes began to fail or to succeed. */
  readonly since: WallTime
}

/** The configured stores that gateways share, from the first write on. */
export class StoreStates {
  readonly #clock: Pick<Clock, 'wall'>
  readonly #states = new Map<StoreName, StoreState>()

  constructor(clock: Pick<Clock, 'wall'>) {
    this.#clock = clock
  }

  get all(): StoreState[] {
    return [...this.#states.values()]
  }

  /** @param failure null = a write succeeded */
  report(name: StoreName, failure: string | null): void {
    const known = this.#states.get(name)
    const isSame = known !== undefined && (known.failure === null) === (failure === null)
    this.#states.set(name, { name, failure, since: isSame ? known.since : this.#clock.wall() })
  }
}
