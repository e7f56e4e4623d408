import type { Clock, WallTime } from '../base/clock.ts'

/** What several gateways share. */
export type StoreName = 'valkey' | 'postgres'

/** How a common store is used, as the last write shows. */
export interface StoreState {
  readonly name: StoreName
  /** Why nothing can be written; null = all is well. */
  readonly failure: string | null
  /** When it began to fail, or to work. */
  readonly since: WallTime
}

/** The common stores of this gateway: those that are configured, from the first attempt on. */
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
