/** Calls `load` again only when the last result is older than `ms`. @param now ms on any clock */
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
