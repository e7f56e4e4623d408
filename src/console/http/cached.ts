/** Returns the last result of `load` if it is at most `ms` old. @param now returns ms of any clock */
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
