/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

export type Piece =
  | { readonly kind: 'text', readonly raw: string, readonly text: string }
  /** `fallback` is the default of the reference; null = the reference has no default. */
  | { readonly kind: 'reference', readonly raw: string, readonly name: string, readonly fallback: string | null }
  | { readonly kind: 'fault', readonly raw: string, readonly message: string }

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/y

/**
 * Splits a value at `${NAME}` and `${NAME:-default}`. `$${` means a literal `${`. A default ends at the first brace, so it cannot contain a
 * reference.
 */
export function splitReferences(value: string): Piece[] {
  const pieces: Piece[] = []
  let start = 0
  const cutText = (end: number): void => {
    const raw = value.slice(start, end)
    if (raw !== '') pieces.push({ kind: 'text', raw, text: raw.replaceAll('$${', () => '${') })
    start = end
  }
  for (let at = value.indexOf('${'); at !== -1; at = value.indexOf('${', at)) {
    const isEscaped = at > start && value[at - 1] === '$'
    if (isEscaped) {
      at += 2
      continue
    }
    cutText(at)
    const piece = readReference(value, at)
    pieces.push(piece)
    at += piece.raw.length
    start = at
  }
  cutText(value.length)
  return pieces
}

function readReference(value: string, at: number): Exclude<Piece, { kind: 'text' }> {
  REFERENCE.lastIndex = at
  const found = REFERENCE.exec(value)
  if (found !== null) {
    const [raw, name, fallback = null] = found
    return fallback?.includes('${')
      ? { kind: 'fault', raw, message: 'a default cannot hold another reference' }
      : { kind: 'reference', raw, name: name!, fallback }
  }
  const close = value.indexOf('}', at)
  const raw = value.slice(at, close === -1 ? undefined : close + 1)
  const message = 'write ${NAME} or ${NAME:-default}, or $${ for a literal ${'
  return { kind: 'fault', raw, message: close === -1 ? `the } of this \${ is missing; ${message}` : message }
}

interface Unresolved {
  readonly raw: string
  readonly message: string
  /** true if the reference is valid, but the variable is not set. */
  readonly isUnset: boolean
}

export interface Expanded {
  /** The expanded text, without the references that could not be resolved. */
  readonly text: string
  /** true if the value contains a reference. */
  readonly referenced: boolean
  readonly defaulted: boolean
  readonly faults: readonly Unresolved[]
}

/**
 * Expands the references in a value. As in a shell, `:-` also replaces a variable that is set but empty. Expanded text is not expanded
 * again.
 */
export function expandReferences(value: string, env: Environment): Expanded {
  let text = ''
  let referenced = false
  let defaulted = false
  const faults: Unresolved[] = []
  let rest = value
  for (const piece of splitReferences(value)) {
    rest = rest.slice(piece.raw.length)
    const fill = isUserinfo(text, rest) ? escapeUserinfo : String
    if (piece.kind === 'text') {
      text += piece.text
    } else if (piece.kind === 'fault') {
      faults.push({ raw: piece.raw, message: piece.message, isUnset: false })
    } else {
      referenced = true
      const found = Object.hasOwn(env, piece.name) ? env[piece.name] : undefined
      const missing = found === undefined || (found === '' && piece.fallback !== null)
      if (!missing) {
        text += fill(found)
      } else if (piece.fallback === null) {
        const message = `the environment variable ${piece.name} is not set; set it, or give a default: \${${piece.name}:-default}`
        faults.push({ raw: piece.raw, message, isUnset: true })
      } else {
        defaulted = true
        text += fill(piece.fallback)
      }
    }
  }
  return { text, referenced, defaulted, faults }
}

/** Tells whether the text between `before` and `rest` is the user or the password of a URL. */
function isUserinfo(before: string, rest: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#@]*$/i.test(before) && /^(?:[^/?#@$]|\$\{[^}]*\})*@/.test(rest)
}

/** Escapes a user or password, unless it is already escaped (RFC 3986 section 3.2.1). */
function escapeUserinfo(text: string): string {
  return /^(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*$/.test(text) ? text : encodeURIComponent(text)
}
