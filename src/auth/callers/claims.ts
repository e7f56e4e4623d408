import { isObject } from '../../base/is-object.ts'

export type Claims = Readonly<Record<string, unknown>>

/** A name longer than this is refused, as are invisible names: people read them in the log and in the console. */
const MAX_NAME_LENGTH = 256
// oxlint-disable-next-line no-control-regex -- those are the ones to refuse
const CONTROL_CHARACTERS = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/
const INVISIBLE = /^[\s\p{Default_Ignorable_Code_Point}]*$/u

/**
 * The claim with this name or path, such as `realm_access.roles`. Names can contain dots, as in `kubernetes.io.namespace` and
 * `https://example.com/groups`: the shortest names that lead to a value count.
 */
export function claimAt(claims: Claims, path: string): unknown {
  // Otherwise anybody could register another person's address at some issuers.
  return path === 'email' && isFalse(claims['email_verified']) ? undefined : valueAt(claims, path)
}

function valueAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot)
    const inner = Object.hasOwn(claims, name) ? claims[name] : undefined
    if (!isObject(inner)) continue
    const found = valueAt(inner, path.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

/** The texts of a claim, which can be a list. Numbers and booleans count as texts. */
export function textsOf(claim: unknown): string[] {
  return [claim].flat().flatMap(value => (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? [String(value)] : []))
}

/** The name of the caller in its claim; null = the claim does not name one. */
export function callerNameOf(claims: Claims, path: string): string | null {
  const claim = claimAt(claims, path)
  const name = typeof claim === 'number' ? String(claim) : claim
  if (typeof name !== 'string' || name.length > MAX_NAME_LENGTH || INVISIBLE.test(name) || CONTROL_CHARACTERS.test(name)) return null
  return name.isWellFormed() ? name : null
}

/** The first text of a claim, at most `length` characters of it; null = none. */
export function textAt(claims: Claims, path: string, length: number): string | null {
  return textsOf(claimAt(claims, path))[0]?.slice(0, length) ?? null
}

/** Some issuers write booleans as texts. */
function isFalse(value: unknown): boolean {
  return value === false || value === 'false'
}
