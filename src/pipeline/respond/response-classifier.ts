import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { isFormatUnknown } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import { denialReason, refusalReason } from '../../protocols/shared/refusal.ts'
import type { RefusalReason } from '../../protocols/shared/refusal.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { isCredentialRefused, isRetryableStatus } from '../../routing/failure.ts'
import { FirstElementClassifier, BodyClassifier } from './body-classifier.ts'
import type { ResponseClassifier, Classification } from './response-gate.ts'
import { FirstEventClassifier, UnknownFormatClassifier } from './stream-classifier.ts'
import { WholeResponseClassifier } from './whole-response-classifier.ts'

/** Bytes of an error answer that are kept for the client, and milliseconds that it may take to come. */
const MAX_ERROR_BYTES = 1024 * 1024
const ERROR_BODY_TIMEOUT = 2_000

/** Refusals for which the route names another target. */
type RefusalReasons = Pick<ReadonlySet<RefusalReason>, 'has' | 'size'>

/** Statuses with which a provider refuses what it was asked, rather than to be asked. */
const REQUEST_REFUSAL_STATUSES = new Set([400, 403, 413, 422])

/** What is asked of an answer before any of it may go to the client. */
export interface ResponseRequirements {
  readonly reasons: RefusalReasons
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
export function classifierFor(
  exchange: Exchange, head: ResponseHead, { reasons, whole, begun }: ResponseRequirements, room: ReserveMemory,
): ResponseClassifier | null {
  const { status } = head
  if (isRetryableStatus(status)) return new ErrorResponseClassifier(true, head, reasons)
  if (REQUEST_REFUSAL_STATUSES.has(status) && reasons.size > 0) return new ErrorResponseClassifier(false, head, reasons)
  const { respondsWithJson, streamsByPath } = exchange.classified.endpoint
  const isEvents = isEventStream(head)
  if (begun() && (status !== 200 || !isEvents || head.coding !== null)) {
    return new ErrorResponseClassifier(true, head, reasons)
  }
  if (status < 200 || status > 299) return null
  if (whole && (isEvents || respondsWithJson) && head.coding === null) {
    return new WholeResponseClassifier(exchange, head, room)
  }
  if (!respondsWithJson) return new AnyByteClassifier()
  if (!isEvents) {
    const isArray = streamsByPath && head.coding === null
    const piece = isArray ? new FirstElementClassifier(head) : new BodyClassifier(head)
    return isFormatUnknown(exchange, head) && head.coding === null ? new UnknownFormatClassifier(piece) : piece
  }
  // Compressed against our asking, its events pass unread.
  return head.coding === null ? new FirstEventClassifier() : new AnyByteClassifier()
}

/** An answer with the status of an error. */
export class ErrorResponseClassifier implements ResponseClassifier {
  readonly maxBytes = MAX_ERROR_BYTES
  readonly timeoutMs = ERROR_BODY_TIMEOUT
  readonly anyByteCounts = true
  readonly fault = null
  /** What it refuses the request for: with 401 or 403, or where the route names another target for that. */
  reason: RefusalReason | null = null
  readonly #isFailure: boolean
  readonly #head: ResponseHead
  readonly #reasons: RefusalReasons

  /** @param isFailure another attempt may fare better whatever it says */
  constructor(isFailure: boolean, head: ResponseHead, reasons: RefusalReasons) {
    this.#isFailure = isFailure
    this.#head = head
    this.#reasons = reasons
  }

  push(): Classification {
    return 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    const { status, coding } = this.#head
    // It is a refused credential, unless it says that it is none.
    if (whole && isCredentialRefused(status)) {
      this.reason = denialReason(decompressedOrRaw(body, coding))
    } else if (whole && this.#reasons.size > 0 && REQUEST_REFUSAL_STATUSES.has(status)) {
      const reason = refusalReason(decompressedOrRaw(body, coding))
      if (reason !== null && this.#reasons.has(reason)) this.reason = reason
    }
    return this.#isFailure || this.reason !== null ? 'bad' : 'good'
  }
}

/** An answer of which nothing can be read: that its body begins has to do. */
class AnyByteClassifier implements ResponseClassifier {
  readonly maxBytes = 0
  readonly timeoutMs = null
  readonly anyByteCounts = true
  readonly fault = null

  push(): Classification {
    return 'good'
  }

  decide(): 'good' {
    return 'good'
  }
}
