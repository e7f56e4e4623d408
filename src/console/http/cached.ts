/**
 * Calls `load` at most once per period; in between it returns the last result.
 *
 * @param load is expensive
 * @param ms how long a result is valid
 * @param now ms, on any clock
 */
export function cached<T>(load: () => Promise<T>, ms: number, now: () => number): () => Promise<T> {
  let last: { readonly at: number; readonly value: Promise<T> } | null = null
  return () => {
    if (last !== null && now() - last.at < ms) return last.value
    const value = load()
    const mine = { at: now(), value }
    last = mine
    // A failure is not cached.
    value.catch(() => {
      if (last === mine) last = null
    })
    return value
  }
}
