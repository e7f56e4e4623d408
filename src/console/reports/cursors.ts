import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { ReportError } from './report-error.ts'

const ALGORITHM = 'aes-256-gcm'
const IV_LENGTH = 12
const TAG_LENGTH = 16
/** Characters: two numbers of 16 digits, and what stands between them. */
const CURSOR_LENGTH = 33

/**
 * Cursors as clients get them. They contain row ids, which count the requests of all keys: the holder of one key
 * could read from them, from their length or from equal ones how much other keys are used. So they are
 * encrypted.
 */
export class Cursors {
  readonly #secret: Uint8Array

  /** @param secret 32 bytes, the same for all who answer */
  constructor(secret: Uint8Array) {
    this.#secret = secret
  }

  /** @param cursor at most 33 characters, without spaces */
  seal(cursor: string): string {
    const iv = randomBytes(IV_LENGTH)
    const cipher = createCipheriv(ALGORITHM, this.#secret, iv)
    const text = cipher.update(cursor.padEnd(CURSOR_LENGTH), 'latin1')
    return Buffer.concat([iv, text, cipher.final(), cipher.getAuthTag()]).toString('base64url')
  }

  /**
   * @param field of the query, for the error
   * @throws ReportError `bad_request` where `seal` did not make it
   */
  open(sealed: string, field: 'before' | 'after'): string {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.length !== IV_LENGTH + CURSOR_LENGTH + TAG_LENGTH) throw unknownCursorError(field)
    const decipher = createDecipheriv(ALGORITHM, this.#secret, bytes.subarray(0, IV_LENGTH), { authTagLength: TAG_LENGTH })
    decipher.setAuthTag(bytes.subarray(-TAG_LENGTH))
    const text = decipher.update(bytes.subarray(IV_LENGTH, -TAG_LENGTH), undefined, 'latin1')
    try {
      return (text + decipher.final('latin1')).trimEnd()
    } catch {
      // Another secret made it, or somebody changed it.
      throw unknownCursorError(field)
    }
  }
}

function unknownCursorError(field: string): ReportError {
  return new ReportError('bad_request', 'Not a cursor of this gateway. Repeat the request without it.', field)
}
