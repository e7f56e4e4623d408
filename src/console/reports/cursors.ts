import { seal, unseal } from '../../base/secrets/seal.ts'
import { ReportError } from './report-error.ts'

/** Number of characters: two numbers of 16 digits, and a separator. */
const CURSOR_LENGTH = 33

/**
 * Encrypts cursors. A cursor contains ids of rows, which count the requests of all keys. From the value, the length or the equality of ids,
 * a key holder could otherwise find out how much other keys are used.
 */
export class Cursors {
  readonly #secret: Uint8Array

  /** @param secret 32 bytes; must be the same at all gateways and workers */
  constructor(secret: Uint8Array) {
    this.#secret = secret
  }

  /** @param cursor at most 33 characters, without spaces */
  seal(cursor: string): string {
    return seal(this.#secret, cursor.padEnd(CURSOR_LENGTH))
  }

  /** @param field the field of the query @throws ReportError `bad_request` if the cursor was not created by `seal` */
  open(sealed: string, field: 'before' | 'after'): string {
    const cursor = unseal(this.#secret, sealed)
    if (cursor === null) throw new ReportError('bad_request', 'Not a cursor of this gateway. Repeat the request without it.', field)
    return cursor.trimEnd()
  }
}
