/** Resolves in the next turn of the event loop, after all work that is already waiting. */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
