import { crc32 } from 'node:zlib'

/** People and secret scanners recognize keys by this prefix. */
const PREFIX = 'mgw_'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^32 keys: 190 bits. */
const RANDOM_LENGTH = 32
/** 62^6 > 2^32. */
const CHECKSUM_LENGTH = 6
const KEY_PATTERN = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`)
/** Shorter keys can be guessed. */
export const MIN_SAFE_KEY_LENGTH = 16
/** The largest multiple of 62 within a byte: the bytes above it would favour some digits. */
const UNBIASED_LIMIT = 248

/** A new key, in the form of GitHub's tokens: prefix, 32 random digits of base 62, and the CRC-32 in 6 digits, which shows typos. */
export function generateKey(randomBytes: (size: number) => Uint8Array): string {
  let digits = ''
  while (digits.length < RANDOM_LENGTH) {
    for (const byte of randomBytes(RANDOM_LENGTH)) {
      if (byte < UNBIASED_LIMIT && digits.length < RANDOM_LENGTH) digits += DIGITS.charAt(byte % DIGITS.length)
    }
  }
  return PREFIX + digits + checksum(PREFIX + digits)
}

/** Does the text have the form of a generated key, checksum included? The key may still not exist. */
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
