import { isFormatUnknown, type Exchange } from '../exchange/exchange.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { createStreamMeter } from '../../protocols/endpoint/create-stream-meter.ts'
import { decompressedOrRaw } from '../../protocols/http/decompress.ts'
import { denialReason, refusalReason, type RefusalReason } from '../../protocols/endpoint/refusal-reason.ts'
import { isEventStream, type ResponseHead } from '../../proxy/upstream/response-head.ts'
import { isCredentialRefused, isRetryableStatus } from '../../routing/failure.ts'
import { BodyClassifier, FirstElementClassifier, TranslatableBodyClassifier } from './body-classifier.ts'
import type { ResponseClassifier, Classification } from './classification.ts'
import { FirstContentClassifier, FirstEventClassifier, UnknownFormatClassifier } from './stream-classifier.ts'
import { WholeResponseClassifier } from './whole-response-classifier.ts'

/** Maximum bytes of an error response that is held, and ms within which the error response has to arrive. */
const MAX_ERROR_BYTES = 1024 * 1024
const ERROR_BODY_TIMEOUT = 2_000

type RefusalReasons = Pick<ReadonlySet<RefusalReason>, 'has' | 'size'>

/** Statuses with which a provider refuses a request because of its content. */
const REQUEST_REFUSAL_STATUSES = new Set([400, 403, 413, 422])

/** What a response must show before the client gets any of it. */
export interface ResponseRequirements {
  readonly reasons: RefusalReasons
  /** The response must be complete. */
  readonly whole: boolean
  /** A stream must have content; an event is not enough. */
  readonly content: boolean
}

/**
 * Chooses a classifier if another attempt can follow, or for a rejected credential.
 * @param isContinuation the response continues the client's stream @returns null = the response may go to the client unchecked
 */
export function classifierFor(
  exchange: Exchange, attempt: UpstreamAttempt, head: ResponseHead, { reasons, whole, content }: ResponseRequirements,
  isContinuation: boolean,
): ResponseClassifier | null {
  const reserveMemory = exchange.memory.reserveForResponse
  const endpoint = attempt.endpoint ?? exchange.classified.endpoint
  const { status } = head
  if (isRetryableStatus(status) && !attempt.refusesClient(status)) return new ErrorResponseClassifier(true, head, reasons)
  if (REQUEST_REFUSAL_STATUSES.has(status) && reasons.size > 0) return new ErrorResponseClassifier(false, head, reasons)
  const { respondsWithJson, streamsByPath } = endpoint
  const isEvents = isEventStream(head)
  if (isContinuation && (status !== 200 || !isEvents || head.coding !== null)) return new ErrorResponseClassifier(true, head, reasons)
  if (status < 200 || status > 299) return null
  if (attempt.translated && !isEvents && !isFormatUnknown(exchange, head)) return new TranslatableBodyClassifier(head)
  // To translate a stream to a whole body, the stream must be complete.
  const isTranslatedWhole = attempt.translated !== null && isEvents && !attempt.translated.request.stream
  if (isTranslatedWhole || (whole && (isEvents || respondsWithJson) && head.coding === null)) {
    return new WholeResponseClassifier(exchange, attempt, head, reserveMemory)
  }
  if (!respondsWithJson) return new AnyByteClassifier()
  if (!isEvents) {
    const isArray = streamsByPath && head.coding === null
    const body = isArray ? new FirstElementClassifier(head) : new BodyClassifier(head)
    return isFormatUnknown(exchange, head) && head.coding === null ? new UnknownFormatClassifier(body) : body
  }
  // A compressed stream, which the request did not allow, is not read.
  if (head.coding !== null) return new AnyByteClassifier()
  if (!content) return new FirstEventClassifier()
  return new FirstContentClassifier(createStreamMeter(endpoint, { contentType: head.contentType, reserveMemory }))
}

class ErrorResponseClassifier implements ResponseClassifier {
  readonly maxBytes = MAX_ERROR_BYTES
  readonly timeoutMs = ERROR_BODY_TIMEOUT
  readonly anyByteCounts = true
  readonly fault = null
  /** Why the upstream refuses the request's content; null = no known reason. Except for 401 and 403, only reasons for which the route has a target. */
  reason: RefusalReason | null = null
  readonly #isFailure: boolean
  readonly #head: ResponseHead
  readonly #reasons: RefusalReasons

  /** @param isFailure true = the status alone makes the response bad, because another attempt may succeed */
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
    // A 401 or 403 is a rejected credential, unless its body gives a reason to refuse the content.
    if (whole && isCredentialRefused(status)) {
      this.reason = denialReason(decompressedOrRaw(body, coding))
    } else if (whole && this.#reasons.size > 0 && REQUEST_REFUSAL_STATUSES.has(status)) {
      const reason = refusalReason(decompressedOrRaw(body, coding))
      if (reason !== null && this.#reasons.has(reason)) this.reason = reason
    }
    return this.#isFailure || this.reason !== null ? 'bad' : 'good'
  }
}

/** For a response that the gateway cannot read: it is good from its first byte on. */
export class AnyByteClassifier implements ResponseClassifier {
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
