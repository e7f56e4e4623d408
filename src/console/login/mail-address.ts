/** Claims of one source: the ID token, or the response of the userinfo endpoint. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * An unquoted address with one @ (RFC 5321 section 4.1.2, with the letters of RFC 6531), without characters that are invisible,
 * reorder the text, or look like white space.
 */
const ADDRESS = /^[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_`{|}~-]+@[\p{L}\p{M}\p{N}.-]+$/u
/** Letters and marks that are not displayed, such as the Hangul filler and the variation selectors. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/u
/** Characters: 64 before the @ and 255 behind it (RFC 5321 section 4.5.3.1). */
const MAX_LENGTH = 320

/**
 * The mail address of a user, in lower case. A source verifies only its own address (OpenID Connect Core, section 5.1). If
 * one source says that its address is not verified, no address counts. If no source says anything about verification, as
 * with some providers, the first address counts.
 *
 * @param sources the most trusted first
 * @returns null = no valid address, or it is not verified
 */
export function mailOf(sources: readonly Claims[]): string | null {
  const words = sources.map(({ email_verified: word }) => word).filter(word => word !== undefined)
  const source = words.length === 0 ? sources.find(({ email }) => email !== undefined) : sources.find(hasVerifiedMail)
  return source === undefined || !words.every(isTrue) ? null : addressOf(source['email'])
}

/** Whether the source has an address, and says that it is verified. */
export function hasVerifiedMail(claims: Claims): boolean {
  return claims['email'] !== undefined && isTrue(claims['email_verified'])
}

/** Some providers send it as a string. */
function isTrue(word: unknown): boolean {
  return word === true || word === 'true'
}

function addressOf(email: unknown): string | null {
  if (typeof email !== 'string' || email.length > MAX_LENGTH || !ADDRESS.test(email) || INVISIBLE.test(email)) return null
  // Refuse compatibility characters such as the Kelvin sign: in lower case they would become ASCII letters.
  return email.normalize('NFKC') === email ? email.toLowerCase() : null
}
