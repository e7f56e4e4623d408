import { constants } from 'node:http2'
import type { Clock, Timer } from '../base/clock.ts'
import { GatewayError, asGatewayError } from '../base/errors.ts'
import { CODINGS } from '../protocols/shared/content-codings.ts'
import { BodyBuffer } from './body-buffer.ts'
import type { ClientRequest } from './client.ts'
import { totalTimeout } from './deadlines.ts'

export interface BodyOptions {
  /** Bytes: the most that is read, and the most that it may decompress to. */
  readonly limit: number
  /** Milliseconds between two pieces. */
  readonly idle: number
  readonly clock: Clock
  /** The exchange's own end: on the monotonic clock, and as the milliseconds of the timeout. */
  readonly total?: { readonly endsAt: number; readonly ms: number }
  /** Gets what ends the reading from outside, and null when it is over. */
  readonly owner?: { stopBy(reading: { stop(reason: GatewayError): void } | null): void }
  /** Called when the body is really wanted: the moment for `100 Continue`. */
  readonly onWanted?: (() => void) | undefined
  /** Sees each piece as it comes: no long step is left for the end. What it throws ends the reading. */
  onChunk?(chunk: Buffer): void
}

/** Does a body come with the request? By its framing alone (RFC 9112 section 6). */
export function hasBody(req: ClientRequest): boolean {
  if ('stream' in req) return !req.stream.endAfterHeaders
  const length = req.headers['content-length']
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/**
 * Reads a request body into memory, under its cap.
 *
 * @throws GatewayError body_too_large as soon as it is known, by the declared
 *   length or by what came; body_timeout; total_timeout; client_gone when the
 *   client's side ends early; the reason for which it was stopped
 */
export function readBody(req: ClientRequest, options: BodyOptions): Promise<Buffer> {
  const { limit, idle, clock, owner } = options
  const declared = Number(req.headers['content-length'] ?? 0)
  if (declared > limit) return Promise.reject(tooLarge(limit))
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const pieces = new BodyBuffer(Number.isFinite(declared) ? declared : 0)
  let lastAt = clock.monotonic()
  const endsAt = options.total?.endsAt ?? Infinity
  let timer: Timer | null = null
  let isOver = false

  function check(): void {
    const now = clock.monotonic()
    const left = Math.min(lastAt + idle, endsAt) - now
    // Half a millisecond: timers fire on whole ones.
    if (left > 0.5) timer = clock.setTimeout(check, left)
    else if (options.total && endsAt - now <= 0.5) fail(totalTimeout(options.total.ms))
    else fail(new GatewayError('body_timeout', `the client sent no more of the body for ${idle / 1000} s (timeouts.idle)`))
  }
  function onData(chunk: Buffer): void {
    lastAt = clock.monotonic()
    if (pieces.size + chunk.length > limit) {
      fail(tooLarge(limit))
      return
    }
    try {
      options.onChunk?.(chunk)
    } catch (error) {
      fail(asGatewayError(error))
      return
    }
    pieces.push(chunk)
  }
  function onEnd(): void {
    // Over HTTP/2 a body that the client broke off ends like a whole one.
    if ('stream' in req && req.stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
      onClose()
      return
    }
    stop()
    resolve(pieces.whole())
  }
  function onClose(): void {
    fail(new GatewayError('client_gone', 'the client disconnected before it sent the whole body'))
  }
  function onError(error: Error): void {
    if (error instanceof GatewayError) fail(error)
    else onClose()
  }
  function fail(error: GatewayError): void {
    stop()
    req.pause()
    reject(error)
  }
  function stop(): void {
    isOver = true
    timer?.cancel()
    owner?.stopBy(null)
    req.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onError)
    // An error after this is the connection's: nobody waits for this body any more.
    req.on('error', ignore)
  }
  req.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onError)
  owner?.stopBy({ stop: fail })
  options.onWanted?.()
  // What came along with the head is read by then, and most bodies have: they need no timer.
  setImmediate(() => {
    if (!isOver && !req.complete) check()
  })
  return promise
}

/** Bytes of a piece. */
const DECODED_PIECE = 64 * 1024

/**
 * Undoes a Content-Encoding, off the event loop.
 *
 * @param limit bytes that it may decompress to
 * @param onChunk sees each piece before the next one is made; what it throws ends the decoding
 * @throws GatewayError wrong_content_encoding, body_too_large
 */
export async function decodeBody(
  body: Buffer, encoding: string, limit: number, onChunk?: (chunk: Buffer) => void,
): Promise<Buffer> {
  const coding = CODINGS.get(encoding.trim().toLowerCase())
  if (!coding) {
    const supported = [...CODINGS.keys()].join(', ')
    throw new GatewayError(
      'wrong_content_encoding',
      `content-encoding '${encoding}' is not supported; use one of ${supported}, or none`,
    )
  }
  const chunks: Buffer[] = []
  let size = 0
  try {
    const decoder = coding.stream({ chunkSize: DECODED_PIECE })
    decoder.end(body)
    for await (const piece of decoder) {
      const chunk = piece as Buffer
      size += chunk.length
      if (size > limit) throw tooLarge(limit)
      onChunk?.(chunk)
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError('wrong_content_encoding', `the body is not valid ${encoding}`)
  }
  return Buffer.concat(chunks, size)
}

function tooLarge(limit: number): GatewayError {
  return new GatewayError('body_too_large', `the request body is larger than the ${limit} bytes allowed (server.body_limit)`)
}

function ignore(): void {}
