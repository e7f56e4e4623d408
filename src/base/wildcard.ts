/**
 * Finds the text that the only star of a glob matches in a name.
 *
 * @param globs the first one that matches the name is used
 * @returns null = none with one star matches
 */
export function starIn(globs: readonly string[], name: string): string | null {
  for (const glob of globs) {
    const [head = '', tail, more] = glob.split('*')
    if (tail === undefined || more !== undefined || name.length < head.length + tail.length) continue
    if (name.startsWith(head) && name.endsWith(tail)) return name.slice(head.length, name.length - tail.length)
  }
  return null
}
