import { decoded } from '../../protocols/shared/decompress.ts'
import { GatewayError } from '../../base/errors.ts'
import { isErrorBody } from '../../protocols/response-body.ts'
import { withoutMark } from '../../protocols/shared/json-text.ts'
import type { AnswerHead } from '../../proxy/response-head.ts'
import type { Judge, Opinion } from '../../proxy/response-gate.ts'
import { isThere, member, parsed } from './stream-event.ts'

/** Bytes of a whole answer that are looked at. */
const MOST_BODY = 256 * 1024
/** Bytes of a growing array in which its first element's first name has to stand. */
const MOST_START = 256

/** An answer in one piece, which has to be JSON and must not be an error alone. */
export class WholeBody implements Judge {
  readonly most = MOST_BODY
  readonly patience = null
  readonly anyByteCounts = true
  fault: GatewayError | null = null
  readonly #encoding: string | null

  constructor(head: AnswerHead) {
    this.#encoding = head.coding
  }

  push(_chunk: Buffer): Opinion {
    return 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    // The beginning of something compressed shows nothing, and a coding
    // unknown here may be the client's wish.
    const plain = this.#encoding === null ? body : whole ? decoded(body, this.#encoding) : null
    if (plain === null) return 'good'
    if (plain !== 'broken') {
      const text = withoutMark(plain)
      if (isErrorAnswer(text)) return 'bad'
      if (whole ? isJson(text) : beginsJson(text)) return 'good'
    }
    this.fault = new GatewayError(
      'upstream_invalid', 'the upstream answered with something that is no answer',
    )
    return 'bad'
  }
}

/** A stream that is one growing JSON array: its first element must not be an error. */
export class FirstElement extends WholeBody {
  #start = ''

  override push(chunk: Buffer): Opinion {
    if (this.#start.length < MOST_START) this.#start += chunk.toString('latin1', 0, MOST_START)
    const first = /^\s*\[\s*\{\s*"(\w+)"/.exec(this.#start)
    return first && first[1] !== 'error' ? 'good' : 'open'
  }
}

/**
 * `{"error": ...}`, or the same as the first element of a list: a
 * generate stream that is no stream of events.
 */
function isErrorAnswer(body: Buffer): boolean {
  const text = body.toString('latin1', 0, 64).trimStart()
  if (!text.startsWith('[')) return isErrorBody(body)
  const value = parsed(body.toString('utf8'))
  return Array.isArray(value) && isThere(member(value[0], 'error'))
}

/** As an object or an array does. */
export function beginsJson(body: Buffer): boolean {
  return /^\s*[[{]/.test(body.toString('latin1', 0, 64))
}

/** An object or an array: no answer is a bare value. */
function isJson(body: Buffer): boolean {
  const value = parsed(body.toString('utf8'))
  return typeof value === 'object' && value !== null
}
