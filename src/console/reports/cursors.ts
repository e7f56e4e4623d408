import { seal, unseal } from '../../base/secrets/seal.ts'
import { ReportError } from './report-error.ts'

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
    return seal(this.#secret, cursor.padEnd(CURSOR_LENGTH))
  }

  /**
   * @param field of the query, for the error
   * @throws ReportError `bad_request` where `seal` did not make it
   */
  open(sealed: string, field: 'before' | 'after'): string {
    const cursor = unseal(this.#secret, sealed)
    if (cursor === null) throw new ReportError('bad_request', 'Not a cursor of this gateway. Repeat the request without it.', field)
    return cursor.trimEnd()
  }
}
