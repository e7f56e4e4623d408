/** The text that the star of a glob matches in a name, for the first matching glob with one star; null = none matches. */
export function starIn(globs: readonly string[], name: string): string | null {
  for (const glob of globs) {
    const [head = '', tail, more] = glob.split('*')
    if (tail === undefined || more !== undefined || name.length < head.length + tail.length) continue
    if (name.startsWith(head) && name.endsWith(tail)) return name.slice(head.length, name.length - tail.length)
  }
  return null
}
