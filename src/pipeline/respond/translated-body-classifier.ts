import { asGatewayError } from '../../base/errors.ts'
import type { GatewayError } from '../../base/errors.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import { withoutByteOrderMark } from '../../protocols/shared/json-text.ts'
import { parseJson } from '../../protocols/shared/stream-event.ts'
import { translateWhole } from '../../protocols/translate.ts'
import type { ResponseTranslation } from '../../protocols/translate.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { isErrorResponse } from './body-classifier.ts'
import { MAX_RESPONSE_BYTES, responseTooLarge } from './classification.ts'
import type { Classification, ResponseClassifier } from './classification.ts'

/**
 * A whole body that is translated. It is held until it is complete, so that the client gets the status of an error if
 * the body cannot be translated.
 */
export class TranslatedBodyClassifier implements ResponseClassifier {
  readonly maxBytes = MAX_RESPONSE_BYTES
  readonly timeoutMs = null
  readonly anyByteCounts = true
  fault: GatewayError | null = null
  readonly #head: ResponseHead
  readonly #attempt: UpstreamAttempt
  readonly #translation: ResponseTranslation

  /** @param attempt gets the body for the client */
  constructor(head: ResponseHead, attempt: UpstreamAttempt, translation: ResponseTranslation) {
    this.#head = head
    this.#attempt = attempt
    this.#translation = translation
  }

  push(_chunk: Buffer): Classification {
    return 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    if (!whole) {
      this.fault = responseTooLarge()
      return 'bad'
    }
    const text = withoutByteOrderMark(decompressedOrRaw(body, this.#head.coding))
    if (isErrorResponse(text)) return 'bad'
    try {
      this.#attempt.translatedBody = translateWhole(this.#translation, parseJson(text.toString('utf8')))
      return 'good'
    } catch (thrown) {
      this.fault = asGatewayError(thrown)
      return 'bad'
    }
  }
}
