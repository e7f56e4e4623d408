import type { Transform } from 'node:stream'
import { GatewayError, asGatewayError } from '../base/errors.ts'
import { CODINGS } from '../protocols/shared/content-codings.ts'
import type { Coding } from '../protocols/shared/content-codings.ts'
import { isNamed } from './raw-headers.ts'
import type { RawHeaders } from './raw-headers.ts'
import type { ResponseHead } from './response-head.ts'

/** Who gets what is unpacked. */
export interface DecompressorHost {
  /** @returns false when no more should come until the flow is resumed */
  onPiece(piece: Buffer): boolean
  /** All that could be unpacked came. @param error what broke the response; null = it ended as it should */
  onEnd(error: GatewayError | null): void
  /** More can be taken in after `push` had said false. */
  onDrain(): void
}

/** Undoes the content coding of a response while it comes, off the event loop. */
export class Decompressor {
  readonly #host: DecompressorHost
  readonly #decoder: Transform
  #cause: GatewayError | null = null
  #isOver = false

  constructor(coding: Coding, host: DecompressorHost) {
    this.#host = host
    // What was cut is read as far as it goes: the protocol's own end tells whether all came.
    this.#decoder = coding.stream({ finishFlush: coding.truncatedFlush })
      .on('data', (piece: Buffer) => this.#pass(piece))
      .on('drain', () => host.onDrain())
      .on('end', () => this.#finish(this.#cause))
      .on('error', cause => this.#finish(
        new GatewayError('upstream_invalid', "the upstream's response is not compressed as its content-encoding says", { cause }),
      ))
  }

  /** @returns false when no more should come until `onDrain` */
  push(packed: Buffer): boolean {
    return this.#decoder.writableEnded || this.#decoder.write(packed)
  }

  /** No more will come. @param error what broke the response; null = it ended as it should */
  end(error: GatewayError | null): void {
    if (this.#decoder.writableEnded) return
    this.#cause = error
    this.#decoder.end()
  }

  /** Lets it go on after `onPiece` had said false. */
  resume(): void {
    this.#decoder.resume()
  }

  /** Nobody wants more of it. */
  destroy(): void {
    this.#isOver = true
    this.#decoder.destroy()
  }

  #pass(piece: Buffer): void {
    if (this.#isOver) return
    try {
      if (!this.#host.onPiece(piece)) this.#decoder.pause()
    } catch (thrown) {
      this.#finish(asGatewayError(thrown))
    }
  }

  #finish(error: GatewayError | null): void {
    if (this.#isOver) return
    this.destroy()
    this.#host.onEnd(error)
  }
}

/** How a response is unpacked; null = it cannot be, or need not. */
export function codingOf({ status, coding }: ResponseHead): Coding | null {
  return status === 200 && coding !== null ? CODINGS.get(coding) ?? null : null
}

/** The headers of a response that was unpacked. */
export function decompressedHeaders(headers: RawHeaders): string[] {
  const out: string[] = []
  for (let n = 0; n < headers.length; n += 2) {
    const name = headers[n] as string
    if (!CODING_HEADERS.some(lower => isNamed(name, lower))) out.push(name, headers[n + 1] as string)
  }
  return out
}

/** They tell of the bytes that came. */
const CODING_HEADERS = ['content-encoding', 'content-length']
