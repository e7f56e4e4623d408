import { legible } from '../../protocols/shared/decompress.ts'
import { isUntold } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { TakeRoom } from '../../base/memory-reservation.ts'
import { denialReason, refusalReason } from '../../protocols/refusal.ts'
import type { RefusalReason } from '../../protocols/refusal.ts'
import { speaksJson } from '../../protocols/responds-with-json.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { AnswerHead } from '../../proxy/response-head.ts'
import type { Judge, Opinion } from '../../proxy/response-gate.ts'
import { isCredentialRefused, isRetryableStatus } from '../../proxy/retry.ts'
import { FirstElement, WholeBody } from './body-classifier.ts'
import { FirstEvent, Untold } from './stream-classifier.ts'
import { Whole } from './whole-response-classifier.ts'

/** Bytes of an error answer that are kept for the client, and milliseconds that it may take to come. */
const MOST_REFUSAL = 1024 * 1024
const REFUSAL_PATIENCE = 2_000

/** Refusals for which the route names another target. */
type Reasons = Pick<ReadonlySet<RefusalReason>, 'has' | 'size'>

/** Statuses with which a provider refuses what it was asked, rather than to be asked. */
const REFUSALS = new Set([400, 403, 413, 422])

/** What is asked of an answer before any of it may go to the client. */
export interface Demands {
  readonly reasons: Reasons
  /** Nothing goes to the client before all of it is there. */
  readonly whole: boolean
  /** The client's stream has begun: only another stream can go on with it. */
  begun(): boolean
}

/**
 * Chooses who looks at the beginning of an answer that another candidate could
 * still replace, or that may be a refused credential.
 *
 * @returns null when the answer may go to the client as it is
 */
export function judgeOf(
  exchange: Exchange, head: AnswerHead, { reasons, whole, begun }: Demands, room: TakeRoom,
): Judge | null {
  const { status } = head
  if (isRetryableStatus(status)) return new Refusal(true, head, reasons)
  if (REFUSALS.has(status) && reasons.size > 0) return new Refusal(false, head, reasons)
  const endpoint = exchange.classified.endpoint.name
  const isEvents = isEventStream(head)
  if (begun() && (status !== 200 || !isEvents || head.coding !== null)) {
    return new Refusal(true, head, reasons)
  }
  if (status < 200 || status > 299) return null
  if (whole && (isEvents || speaksJson(endpoint)) && head.coding === null) {
    return new Whole(exchange, head, room)
  }
  if (!speaksJson(endpoint)) return new AnyByte()
  if (!isEvents) {
    const isArray = endpoint === 'generate.stream' && head.coding === null
    const piece = isArray ? new FirstElement(head) : new WholeBody(head)
    return isUntold(exchange, head) && head.coding === null ? new Untold(piece) : piece
  }
  // Compressed against our asking, its events pass unread.
  return head.coding === null ? new FirstEvent() : new AnyByte()
}

/** An answer with the status of an error. */
export class Refusal implements Judge {
  readonly most = MOST_REFUSAL
  readonly patience = REFUSAL_PATIENCE
  readonly anyByteCounts = true
  readonly fault = null
  /** What it refuses the request for: with 401 or 403, or where the route names another target for that. */
  reason: RefusalReason | null = null
  readonly #isFailure: boolean
  readonly #head: AnswerHead
  readonly #reasons: Reasons

  /** @param isFailure another attempt may fare better whatever it says */
  constructor(isFailure: boolean, head: AnswerHead, reasons: Reasons) {
    this.#isFailure = isFailure
    this.#head = head
    this.#reasons = reasons
  }

  push(): Opinion {
    return 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    const { status, coding } = this.#head
    // It is a refused credential, unless it says that it is none.
    if (whole && isCredentialRefused(status)) {
      this.reason = denialReason(legible(body, coding))
    } else if (whole && this.#reasons.size > 0 && REFUSALS.has(status)) {
      const reason = refusalReason(legible(body, coding))
      if (reason !== null && this.#reasons.has(reason)) this.reason = reason
    }
    return this.#isFailure || this.reason !== null ? 'bad' : 'good'
  }
}

/** An answer of which nothing can be read: that its body begins has to do. */
class AnyByte implements Judge {
  readonly most = 0
  readonly patience = null
  readonly anyByteCounts = true
  readonly fault = null

  push(): Opinion {
    return 'good'
  }

  decide(): 'good' {
    return 'good'
  }
}
