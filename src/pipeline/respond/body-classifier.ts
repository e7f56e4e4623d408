import { GatewayError } from '../../base/errors.ts'
import { decompressed, decompressedOrRaw } from '../../protocols/http/decompress.ts'
import { beginsJson, withoutByteOrderMark } from '../../protocols/json/json-text.ts'
import { isErrorBody } from '../../protocols/usage/response-body.ts'
import { isPresent, member, parseJsonText } from '../../protocols/events/stream-event.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import { MAX_RESPONSE_BYTES, responseTooLarge } from './classification.ts'
import type { ResponseClassifier, Classification } from './classification.ts'

/** Bytes of a body that are read. */
const MAX_BODY_BYTES = 256 * 1024
/** Bytes of a JSON array within which the first field of its first element must begin. */
const MAX_START_BYTES = 256

/** Classifies a whole body: it must be JSON, and must not be only an error. */
export class BodyClassifier implements ResponseClassifier {
  readonly maxBytes = MAX_BODY_BYTES
  readonly timeoutMs = null
  readonly anyByteCounts = true
  fault: GatewayError | null = null
  readonly #encoding: string | null

  constructor(head: ResponseHead) {
    this.#encoding = head.coding
  }

  push(_chunk: Buffer): Classification {
    return 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    // The beginning of a compressed body shows nothing, and the client may have requested a coding that is unknown
    // here.
    const plain = this.#encoding === null ? body : whole ? decompressed(body, this.#encoding) : null
    if (plain === null) return 'good'
    if (plain !== 'broken') {
      const text = withoutByteOrderMark(plain)
      if (isErrorResponse(text)) return 'bad'
      if (whole ? isJson(text) : beginsJson(text)) return 'good'
    }
    this.fault = new GatewayError(
      'upstream_invalid', 'the upstream responded with a body that is not a JSON object or array',
    )
    return 'bad'
  }
}

/** Classifies a stream that is one JSON array: its first element must not be an error. */
export class FirstElementClassifier extends BodyClassifier {
  #start = ''

  override push(chunk: Buffer): Classification {
    if (this.#start.length < MAX_START_BYTES) this.#start += chunk.toString('latin1', 0, MAX_START_BYTES)
    const first = /^\s*\[\s*\{\s*"(\w+)"/.exec(this.#start)
    return first && first[1] !== 'error' ? 'good' : 'open'
  }
}

/** Classifies a whole body that is translated: it must be complete, and must not be an error. */
export class TranslatableBodyClassifier implements ResponseClassifier {
  readonly maxBytes = MAX_RESPONSE_BYTES
  readonly timeoutMs = null
  readonly anyByteCounts = true
  fault: GatewayError | null = null
  readonly #head: ResponseHead

  constructor(head: ResponseHead) {
    this.#head = head
  }

  push(_chunk: Buffer): Classification {
    return 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    if (whole) return isErrorResponse(plainText(body, this.#head)) ? 'bad' : 'good'
    this.fault = responseTooLarge()
    return 'bad'
  }
}

/** A body without its content coding and byte order mark. */
export function plainText(body: Buffer, { coding }: ResponseHead): Buffer {
  return withoutByteOrderMark(decompressedOrRaw(body, coding))
}

/** Is it `{"error": ...}`, or a list whose first element is that (a generate stream without server-sent events)? */
export function isErrorResponse(body: Buffer): boolean {
  const text = body.toString('latin1', 0, 64).trimStart()
  if (!text.startsWith('[')) return isErrorBody(body)
  const value = parseJsonText(body.toString('utf8'))
  return Array.isArray(value) && isPresent(member(value[0], 'error'))
}

/** Is it an object or an array? A response is never a bare value. */
function isJson(body: Buffer): boolean {
  const value = parseJsonText(body.toString('utf8'))
  return typeof value === 'object' && value !== null
}
