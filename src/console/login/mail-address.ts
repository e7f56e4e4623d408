/** Claims from one source: the ID token, or the response of the userinfo endpoint. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * Matches an unquoted address with one @ and the letters of RFC 6531 (RFC 5321 section 4.1.2). Characters that reorder text or look like
 * white space do not match.
 */
const ADDRESS = /^[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_`{|}~-]+@[\p{L}\p{M}\p{N}.-]+$/u
/** Matches characters that are not displayed, such as the Hangul filler and the variation selectors. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/u
/** Maximum length: 64 characters before the @, and 255 after it (RFC 5321 section 4.5.3.1). */
const MAX_LENGTH = 320

/**
 * The mail address of the user. A source can verify only its own address (OpenID Connect Core, section 5.1). If a source says that its
 * address is not verified, no address is used. If no source says anything about verification, as with some providers, the first address is
 * used.
 *
 * @param sources sources of claims, the most trusted first
 * @returns the address in lower case; null = no valid address, or an address that is not verified
 */
export function mailOf(sources: readonly Claims[]): string | null {
  const words = sources.map(({ email_verified: word }) => word).filter(word => word !== undefined)
  const source = words.length === 0 ? sources.find(({ email }) => email !== undefined) : sources.find(hasVerifiedMail)
  return source === undefined || !words.every(isTrue) ? null : addressOf(source['email'])
}

/** Tells whether the source has an address, and says that the address is verified. */
export function hasVerifiedMail(claims: Claims): boolean {
  return claims['email'] !== undefined && isTrue(claims['email_verified'])
}

/**
 * The claims of both sources; of a claim in both, the first source's. The address counts as verified only if its own source says so and
 * neither source denies it, unless no source says anything.
 */
export function joinClaims(first: Claims, second: Claims): Claims {
  const words = [first, second].map(({ email_verified: word }) => word).filter(word => word !== undefined)
  const isDoubtful = words.length > 0 && !(words.every(isTrue) && isTrue((first['email'] === undefined ? second : first)['email_verified']))
  return { ...second, ...first, ...isDoubtful && { email_verified: false } }
}

/** Tells whether a claim is true. Some providers send a string. */
function isTrue(word: unknown): boolean {
  return word === true || word === 'true'
}

function addressOf(email: unknown): string | null {
  if (typeof email !== 'string' || email.length > MAX_LENGTH || !ADDRESS.test(email) || INVISIBLE.test(email)) return null
  // Refuse compatibility characters: the lower case of the Kelvin sign, for example, is an ASCII letter.
  return email.normalize('NFKC') === email ? email.toLowerCase() : null
}
