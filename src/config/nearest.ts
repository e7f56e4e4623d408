/**
 * The candidate that a mistyped word most likely means; null = no candidate is close. At most a third of the letters may differ, but one
 * letter may always differ. Case, `-` and `_` are ignored.
 */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  const wanted = normalize(word)
  let best: string | null = null
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    const other = normalize(candidate)
    if (Math.abs(other.length - wanted.length) >= least) continue
    const distance = editDistance(wanted, other)
    if (distance >= least) continue
    least = distance
    best = candidate
  }
  return best
}

/** A suggestion for an error message: `; did you mean "x"?`. Empty if no candidate is close. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const guess = nearest(word, candidates)
  return guess === null ? '' : `; did you mean "${guess}"?`
}

function normalize(word: string): string {
  return word.slice(0, 64).toLowerCase().replaceAll(/[-_]/g, '')
}

/**
 * Damerau-Levenshtein distance as optimal string alignment: counts letters that are inserted, deleted, replaced, or swapped with their
 * neighbour.
 */
export function editDistance(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      let cost = Math.min(replaced, above[j]! + 1, row[j - 1]! + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2]! + 1)
      row.push(cost)
    }
    before = above
    above = row
  }
  return above[b.length]!
}
