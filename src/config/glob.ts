type Match = (text: string) => boolean

/**
 * Compiles a case-sensitive glob. `*` matches any characters, slashes included, or none; no other character is special. There is
 * no backtracking: the pieces between the stars are searched once each, from left to right.
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
 * Passes if one of the globs matches. Names without a star cost one lookup together. The text may itself be a glob: it
 * passes if one of the globs matches everything that the text matches, because only a star can match a star.
 */
export function compileGlobs(globs: readonly string[]): Match {
  if (globs.length === 1) return compileGlob(globs[0]!)
  const names = new Set(globs.filter(glob => !glob.includes('*')))
  const patterns = globs.filter(glob => glob.includes('*')).map(compileGlob)
  if (patterns.length === 0) return text => names.has(text)
  return text => names.has(text) || patterns.some(matches => matches(text))
}

/**
 * Passes for a glob if some text matches both it and one of these globs. If both contain a star, the pieces between the stars
 * can follow one another, so only heads and tails have to agree.
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

/** The text before the first star and after the last one. */
interface Ends { readonly head: string, readonly tail: string }

function endsOf(glob: string): Ends {
  return { head: glob.slice(0, glob.indexOf('*')), tail: glob.slice(glob.lastIndexOf('*') + 1) }
}

function endsAgree(a: Ends, b: Ends): boolean {
  return (a.head.startsWith(b.head) || b.head.startsWith(a.head)) && (a.tail.endsWith(b.tail) || b.tail.endsWith(a.tail))
}
