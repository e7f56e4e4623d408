import type { Route, Target } from './types.ts'

/** Every target of a route, those for requests that a model refuses included. */
export function everyTarget({ targets, on }: Route): readonly Target[] {
  return [...targets, on.contextLength, on.contentFilter].filter(target => target !== null)
}
