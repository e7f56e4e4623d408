import { randomFillSync } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'

/** Number of ids whose random bytes are requested together, because a system call costs more than an id. */
const IDS_PER_BATCH = 256
const BYTES_PER_ID = 16
/** Mask for the first sequence number of a ms. It leaves room for twice as many ids as any machine creates in a ms. */
const FIRST_SEQUENCE_MASK = 0x3fffffff

/** Creates UUIDv7 ids (RFC 9562 section 5.7) in ascending order (section 6.2, method 1). @param now returns ms since 1970 */
export function requestIds(now: () => number): () => string {
  const pool = Buffer.alloc(IDS_PER_BATCH * BYTES_PER_ID)
  const bytes = Buffer.alloc(BYTES_PER_ID)
  let used = pool.length
  let msecs = 0
  let seq = 0
  return () => {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    const random = pool.subarray(used, used + BYTES_PER_ID)
    used += BYTES_PER_ID
    const ms = now()
    // If the clock goes back, keep the last time, so that ids stay in order.
    if (ms > msecs) {
      msecs = ms
      seq = random.readUInt32BE(0) & FIRST_SEQUENCE_MASK
    } else {
      seq += 1
    }
    // The hex text is formatted here, because text from the library uses ten times the memory.
    const hex = uuidv7({ random, msecs, seq }, bytes).toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  }
}

/**
 * Remembers ids that clients sent. The ledger's key is the id and the start in ms: a second request with both would overwrite the cost of
 * the first.
 */
export class ClientRequestIds {
  #at = 0
  readonly #ids = new Set<string>()

  /** @param at ms since 1970 @returns false = another request used the id in the same ms */
  isFirst(id: string, at: number): boolean {
    if (at !== this.#at) this.#ids.clear()
    this.#at = at
    if (this.#ids.has(id)) return false
    this.#ids.add(id)
    return true
  }
}
