import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const IV_LENGTH = 12
const TAG_LENGTH = 16

/**
 * Encrypts a text for a client that returns it without reading it.
 * @param key 32 bytes
 * @returns base64url, longer by a fixed number of bytes
 */
export function seal(key: Uint8Array, text: string): string {
  const iv = randomBytes(IV_LENGTH)
  const cipher = createCipheriv(ALGORITHM, key, iv)
  return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

/** @returns null = the text was not made by `seal` with this key */
export function unseal(key: Uint8Array, sealed: string): string | null {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < IV_LENGTH + TAG_LENGTH) return null
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, IV_LENGTH), { authTagLength: TAG_LENGTH })
  decipher.setAuthTag(bytes.subarray(-TAG_LENGTH))
  const text = decipher.update(bytes.subarray(IV_LENGTH, -TAG_LENGTH))
  try {
    return Buffer.concat([text, decipher.final()]).toString('utf8')
  } catch {
    return null
  }
}
