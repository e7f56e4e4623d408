type Match = (text: string) => boolean

/**
 * Compiles a case-sensitive glob. `*` matches any number of characters, including slashes. No other character is special. The matcher does
 * not backtrack: it searches each piece between the stars once, from left to right.
 */
export function compileGlob(glob: string): Match {
  const pieces = glob.split('*')
  const head = pieces[0]!
  if (pieces.length === 1) return text => text === head
  const tail = pieces.at(-1)!
  const middle = pieces.slice(1, -1).filter(piece => piece !== '')
  if (middle.length === 0 && tail === '') return head === '' ? () => true : text => text.startsWith(head)
  return text => {
    const end = text.length - tail.length
    if (end < head.length || !text.startsWith(head) || !text.endsWith(tail)) return false
    let from = head.length
    for (const piece of middle) {
      const found = text.indexOf(piece, from)
      if (found === -1) return false
      from = found + piece.length
    }
    return from <= end
  }
}

/**
 * Creates a matcher for texts that at least one of the globs matches. All names without a star together cost one look-up. The text may
 * itself be a glob: then one of the globs must match every text that this glob matches. Only a star can match a star.
 */
export function compileGlobs(globs: readonly string[]): Match {
  if (globs.length === 1) return compileGlob(globs[0]!)
  const names = new Set(globs.filter(glob => !glob.includes('*')))
  const patterns = globs.filter(glob => glob.includes('*')).map(compileGlob)
  if (patterns.length === 0) return text => names.has(text)
  return text => names.has(text) || patterns.some(matches => matches(text))
}

/**
 * Creates a matcher for globs that overlap one of these globs: some text matches both. If both globs contain a star, the pieces between the
 * stars can follow one another, so only the heads and tails of the globs must agree.
 */
export function compileOverlaps(globs: readonly string[]): Match {
  const matches = compileGlobs(globs)
  const names = globs.filter(glob => !glob.includes('*'))
  const patterns = globs.filter(glob => glob.includes('*')).map(endsOf)
  return glob => {
    if (matches(glob)) return true
    if (!glob.includes('*')) return false
    const ends = endsOf(glob)
    return names.some(compileGlob(glob)) || patterns.some(other => endsAgree(other, ends))
  }
}

/** The text before the first star of a glob, and the text after the last star. */
interface Ends { readonly head: string, readonly tail: string }

function endsOf(glob: string): Ends {
  return { head: glob.slice(0, glob.indexOf('*')), tail: glob.slice(glob.lastIndexOf('*') + 1) }
}

function endsAgree(a: Ends, b: Ends): boolean {
  return (a.head.startsWith(b.head) || b.head.startsWith(a.head)) && (a.tail.endsWith(b.tail) || b.tail.endsWith(a.tail))
}
