/** The text in a name for which the star of a glob stands; null = no glob matches. Uses the first matching glob with one star. */
export function starIn(globs: readonly string[], name: string): string | null {
  for (const glob of globs) {
    const [head = '', tail, more] = glob.split('*')
    if (tail === undefined || more !== undefined || name.length < head.length + tail.length) continue
    if (name.startsWith(head) && name.endsWith(tail)) return name.slice(head.length, name.length - tail.length)
  }
  return null
}
