import { GatewayError } from '../../base/errors.ts'
import { decompressed, decompressedOrRaw } from '../../protocols/http/decompress.ts'
import { beginsJson, withoutByteOrderMark } from '../../protocols/json/json-text.ts'
import { isErrorBody } from '../../protocols/usage/response-body.ts'
import { isPresent, member, parseJsonText } from '../../protocols/events/stream-event.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import { MAX_RESPONSE_BYTES, responseTooLarge, type ResponseClassifier, type Classification } from './classification.ts'

const MAX_BODY_BYTES = 256 * 1024
/** Bytes of a JSON array that are searched for the first field of the first element. */
const MAX_START_BYTES = 256

/** A whole body is good if it is JSON and not an error. */
export class BodyClassifier implements ResponseClassifier {
  readonly maxBytes: number = MAX_BODY_BYTES
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
    // Accept a body that cannot be decompressed: an incomplete one, or one in a coding that only the client knows.
    const plain = this.#encoding === null ? body : whole ? decompressed(body, this.#encoding) : null
    if (plain === null) return 'good'
    if (plain !== 'broken') {
      const text = withoutByteOrderMark(plain)
      if (isErrorResponse(text)) return 'bad'
      if (whole ? isJson(text) : beginsJson(text)) return 'good'
    }
    this.fault = new GatewayError('upstream_invalid', 'the upstream responded with a body that is not a JSON object or array')
    return 'bad'
  }
}

/** A JSON array is good if its first element is not an error. */
export class FirstElementClassifier extends BodyClassifier {
  #start = ''

  override push(chunk: Buffer): Classification {
    if (this.#start.length < MAX_START_BYTES) this.#start += chunk.toString('latin1', 0, MAX_START_BYTES)
    const first = /^\s*\[\s*\{\s*"(\w+)"/.exec(this.#start)
    return first && first[1] !== 'error' ? 'good' : 'open'
  }
}

/** A whole body that must be translated is good if it is complete JSON and not an error. */
export class TranslatableBodyClassifier extends BodyClassifier {
  override readonly maxBytes = MAX_RESPONSE_BYTES
  readonly #head: ResponseHead

  constructor(head: ResponseHead) {
    super(head)
    this.#head = head
  }

  override decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    if (whole) return isErrorResponse(plainText(body, this.#head)) ? 'bad' : 'good'
    this.fault = responseTooLarge()
    return 'bad'
  }
}

/** @returns the body without content coding and byte order mark */
export function plainText(body: Buffer, { coding }: ResponseHead): Buffer {
  return withoutByteOrderMark(decompressedOrRaw(body, coding))
}

/** @returns true = the body is an error, or (of Google's API without server-sent events) a list whose first element has an error */
export function isErrorResponse(body: Buffer): boolean {
  const text = body.toString('latin1', 0, 64).trimStart()
  if (!text.startsWith('[')) return isErrorBody(body)
  const value = parseJsonText(body.toString('utf8'))
  return Array.isArray(value) && isPresent(member(value[0], 'error'))
}

/** @returns true = a JSON object or list; other JSON values are never a response */
function isJson(body: Buffer): boolean {
  const value = parseJsonText(body.toString('utf8'))
  return typeof value === 'object' && value !== null
}
