/** Resolves in the next turn of the event loop, after the work that already waits. */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
