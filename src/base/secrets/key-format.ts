import { crc32 } from 'node:zlib'

/** Prefix by which people and secret scanners recognise keys. */
const PREFIX = 'mgw_'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Number of random digits: 62^32 keys, which is 190 bits. */
const RANDOM_LENGTH = 32
/** Number of digits of the checksum: 62^6 > 2^32. */
const CHECKSUM_LENGTH = 6
const KEY_PATTERN = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`)
/** Minimum length of a safe key, because shorter keys can be guessed. */
export const MIN_SAFE_KEY_LENGTH = 16
/** The largest multiple of 62 in a byte. Bytes from this value on are not used, because they would make some digits more frequent. */
const UNBIASED_LIMIT = 248

/**
 * Creates a key in the format of GitHub's tokens: prefix, 32 random digits of base 62, and the CRC-32 in 6 digits, by which typos are
 * recognised.
 */
export function generateKey(randomBytes: (size: number) => Uint8Array): string {
  let digits = ''
  while (digits.length < RANDOM_LENGTH) {
    for (const byte of randomBytes(RANDOM_LENGTH)) {
      if (byte < UNBIASED_LIMIT && digits.length < RANDOM_LENGTH) digits += DIGITS.charAt(byte % DIGITS.length)
    }
  }
  return PREFIX + digits + checksum(PREFIX + digits)
}

/** Tells whether the text has the form of a generated key, with a correct checksum. The key may not exist. */
export function isWellFormed(text: string): boolean {
  return KEY_PATTERN.test(text) && checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = DIGITS.charAt(rest % DIGITS.length) + digits
    rest = Math.floor(rest / DIGITS.length)
  }
  return digits
}
