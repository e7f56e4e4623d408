/**
 * Asks at most so often; in between, what was answered last.
 *
 * @param load what it costs something to ask for
 * @param ms for which a response holds
 * @param now ms, on any clock
 */
export function cached<T>(load: () => Promise<T>, ms: number, now: () => number): () => Promise<T> {
  let last: { readonly at: number; readonly answer: Promise<T> } | null = null
  return () => {
    if (last !== null && now() - last.at < ms) return last.answer
    const answer = load()
    const mine = { at: now(), answer }
    last = mine
    // A failure is not cached.
    answer.catch(() => {
      if (last === mine) last = null
    })
    return answer
  }
}
