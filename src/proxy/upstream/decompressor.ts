import type { Transform } from 'node:stream'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import { CODINGS, type Coding } from '../../base/content-codings.ts'
import { isNamed, type RawHeaders } from '../http/raw-headers.ts'
import type { ResponseHead } from './response-head.ts'

export interface DecompressorHost {
  /** @returns false = pause until `resume` */
  onPiece(piece: Buffer): boolean
  /** Everything that could be decompressed was passed on. @param error what broke the response; null = it ended properly */
  onEnd(error: GatewayError | null): void
  /** `push` may be called again after it returned false. */
  onDrain(): void
}

/** Decompresses a response as it arrives, off the event loop. */
export class Decompressor {
  readonly #host: DecompressorHost
  readonly #decoder: Transform
  #cause: GatewayError | null = null
  #isOver = false

  constructor(coding: Coding, host: DecompressorHost) {
    this.#host = host
    // Decode a truncated body as far as possible: the end of the protocol shows whether it is complete.
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

  /** The compressed body has ended. @param error what broke the response; null = it ended properly */
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

/** null = not compressed, or decompression is not possible. */
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
