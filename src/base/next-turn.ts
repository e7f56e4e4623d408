/** Resolves in the next turn of the event loop: what waits there runs first. */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
