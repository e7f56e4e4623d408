import { createRequire } from 'node:module'
import type { EventStreamCodec } from '@smithy/eventstream-codec'
import { GatewayError } from '../../base/errors.ts'
import { GrowingBytes } from '../../protocols/events/growing-bytes.ts'
import type { BodyDecoder } from '../shared/provider.ts'

export interface Frame {
  /** `event`, `exception` or `error`. */
  readonly kind: string
  /** Name of the event or exception; empty = none. */
  readonly name: string
  readonly payload: Buffer
}

/** Bytes. A longer frame is a fault. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024
/** Bytes of a frame's lengths and checksums, without its headers and payload. */
const MIN_FRAME_BYTES = 16
const NOTHING = Buffer.alloc(0)

/** Decodes AWS's binary frames. Source: "Event stream encoding" in the Amazon Transcribe developer guide. */
export class EventStreamDecoder implements BodyDecoder {
  fault: GatewayError | null = null
  readonly #codec = createCodec()
  readonly #held = new GrowingBytes()
  readonly #write: (frame: Frame) => string

  constructor(write: (frame: Frame) => string) {
    this.#write = write
  }

  push(chunk: Buffer): Buffer {
    const held = this.#held
    if (this.fault !== null) return NOTHING
    held.append(chunk, 0, chunk.length)
    const out: string[] = []
    let at = 0
    try {
      while (held.length - at >= MIN_FRAME_BYTES) {
        const length = held.bytes.readUInt32BE(at)
        if (length < MIN_FRAME_BYTES || length > MAX_FRAME_BYTES) throw new RangeError('no frame has this length')
        if (held.length - at < length) break
        out.push(this.#write(this.#decode(held.bytes.subarray(at, at + length))))
        at += length
      }
    } catch (cause) {
      // Do not use the library's message, because it may quote bytes of the response.
      this.fault = new GatewayError('upstream_invalid', 'the upstream sent a damaged frame', { cause })
      at = held.length
    }
    // Move the rest only after whole frames, so that a frame that arrives in many chunks is not moved with each chunk.
    if (at > 0) held.bytes.copyWithin(0, at, held.length)
    held.length -= at
    if (held.length === 0) held.clear()
    return out.length === 0 ? NOTHING : Buffer.from(out.join(''))
  }

  end(): Buffer {
    if (this.#held.length > 0) this.fault ??= new GatewayError('upstream_cut', 'the upstream ended the stream in the middle of a frame')
    return NOTHING
  }

  #decode(frame: Buffer): Frame {
    const { headers, body } = this.#codec.decode(frame)
    const text = (name: string): string => String(headers[name]?.value ?? '')
    return {
      kind: text(':message-type'),
      name: text(':event-type') || text(':exception-type') || text(':error-code'),
      payload: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    }
  }
}

/** Loads the library when the first stream begins. */
function createCodec(): EventStreamCodec {
  const { EventStreamCodec: Codec } = createRequire(import.meta.url)('@smithy/eventstream-codec') as typeof import('@smithy/eventstream-codec')
  return new Codec(bytes => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')), text => Buffer.from(text, 'utf8'))
}
