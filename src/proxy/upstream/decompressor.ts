import type { Transform } from 'node:stream'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import { CODINGS, type Coding } from '../../base/content-codings.ts'
import { isNamed, type RawHeaders } from '../http/raw-headers.ts'
import type { ResponseHead } from './response-head.ts'

export interface DecompressorHost {
  /** @returns false = pause until `resume` */
  onPiece(piece: Buffer): boolean
  /** Called after the last piece. @param error why the response broke; null = the response ended properly */
  onEnd(error: GatewayError | null): void
  /** Called when `push` may be called again after it has returned false. */
  onDrain(): void
}

/** Decompresses a response as it arrives, outside the event loop. */
export class Decompressor {
  readonly #host: DecompressorHost
  readonly #decoder: Transform
  #cause: GatewayError | null = null
  #isOver = false

  constructor(coding: Coding, host: DecompressorHost) {
    this.#host = host
    // Decode a truncated body as far as possible: the protocol's end shows whether the response is complete.
    this.#decoder = coding.stream({ finishFlush: coding.truncatedFlush })
      .on('data', (piece: Buffer) => this.#pass(piece))
      .on('drain', () => host.onDrain())
      .on('end', () => this.#finish(this.#cause))
      .on('error', cause => this.#finish(
        new GatewayError('upstream_invalid', "the upstream's response is not compressed as its content-encoding says", { cause }),
      ))
  }

  /** @returns false = wait for `onDrain` */
  push(packed: Buffer): boolean {
    return this.#decoder.writableEnded || this.#decoder.write(packed)
  }

  /** Call this when the compressed body has ended. @param error why the response broke; null = the response ended properly */
  end(error: GatewayError | null): void {
    if (this.#decoder.writableEnded) return
    this.#cause = error
    this.#decoder.end()
  }

  resume(): void {
    this.#decoder.resume()
  }

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

/** @returns the coding to decompress; null = not compressed, or not possible */
export function codingOf({ status, coding }: ResponseHead): Coding | null {
  return status === 200 && coding !== null ? CODINGS.get(coding) ?? null : null
}

export function decompressedHeaders(headers: RawHeaders): string[] {
  const out: string[] = []
  for (let n = 0; n < headers.length; n += 2) {
    const name = headers[n] as string
    if (!CODING_HEADERS.some(lower => isNamed(name, lower))) out.push(name, headers[n + 1] as string)
  }
  return out
}

const CODING_HEADERS = ['content-encoding', 'content-length']
