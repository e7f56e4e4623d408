import { seal, unseal } from '../../base/secrets/seal.ts'
import { ReportError } from './report-error.ts'

/** Characters: two numbers of 16 digits, and a separator. */
const CURSOR_LENGTH = 33

/**
 * Encrypts the cursors for clients. A cursor contains row ids, which count the requests of all keys: from ids, or
 * from their length or equality, a key holder could conclude how much other keys are used.
 */
export class Cursors {
  readonly #secret: Uint8Array

  /** @param secret 32 bytes, the same at all gateways and workers */
  constructor(secret: Uint8Array) {
    this.#secret = secret
  }

  /** @param cursor at most 33 characters, without spaces */
  seal(cursor: string): string {
    return seal(this.#secret, cursor.padEnd(CURSOR_LENGTH))
  }

  /**
   * @param field of the query, for the error
   * @throws ReportError `bad_request` if `seal` did not create it
   */
  open(sealed: string, field: 'before' | 'after'): string {
    const cursor = unseal(this.#secret, sealed)
    if (cursor === null) throw new ReportError('bad_request', 'Not a cursor of this gateway. Repeat the request without it.', field)
    return cursor.trimEnd()
  }
}
