import { constants } from 'node:http2'
import type { Clock, Timer } from '../../base/clock.ts'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import { CODINGS } from '../../base/content-codings.ts'
import { BodyBuffer } from './body-buffer.ts'
import type { ClientRequest } from './client.ts'
import { totalTimeout } from '../http/deadlines.ts'

export interface BodyOptions {
  /** Maximum bytes, both as received and decompressed. */
  readonly limit: number
  /** Maximum milliseconds between two pieces. */
  readonly idle: number
  readonly clock: Clock
  /** When the exchange must end, ms on the monotonic clock, and its total timeout in ms; absent = no limit. */
  readonly total?: { readonly endsAt: number; readonly ms: number }
  /** `stopBy` gets an object whose `stop` ends the reading; it gets null when the reading is over. */
  readonly owner?: { stopBy(reading: { stop(reason: GatewayError): void } | null): void }
  /** Called when reading begins, for example to send `100 Continue`. */
  readonly onWanted?: (() => void) | undefined
  /** Called with each piece as it arrives, to distribute the work over the pieces. An exception ends the reading. */
  onChunk?(chunk: Buffer): void
}

/** @returns true = the request has a body, by its framing (RFC 9112 section 6) */
export function hasBody(req: ClientRequest): boolean {
  if ('stream' in req) return !req.stream.endAfterHeaders
  const length = req.headers['content-length']
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** @throws GatewayError body_too_large; body_timeout; total_timeout; client_gone (body not complete); the reason given to `stop` */
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
    // Tolerate half a millisecond, because timers fire on whole milliseconds.
    if (left > 0.5) timer = clock.setTimeout(check, left)
    else if (options.total && endsAt - now <= 0.5) fail(totalTimeout(options.total.ms))
    else fail(new GatewayError('body_timeout', `the client sent no more of the body for ${idle / 1000} s (timeouts.idle)`))
  }
  function onData(chunk: Buffer): void {
    lastAt = clock.monotonic()
    if (pieces.size + chunk.length > limit) return fail(tooLarge(limit))
    try {
      options.onChunk?.(chunk)
    } catch (error) {
      return fail(asGatewayError(error))
    }
    pieces.push(chunk)
  }
  function onEnd(): void {
    // Over HTTP/2, node emits `end` also for a body that the client aborted.
    if ('stream' in req && req.stream.rstCode !== constants.NGHTTP2_NO_ERROR) return onClose()
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
    // Ignore later errors of the request: they concern only the connection.
    req.on('error', ignore)
  }
  req.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onError)
  owner?.stopBy({ stop: fail })
  options.onWanted?.()
  // Start the timer one turn later: most bodies arrive with the head, are complete by then, and need no timer.
  setImmediate(() => {
    if (!isOver && !req.complete) check()
  })
  return promise
}

const DECODED_PIECE = 64 * 1024

/** Decodes outside the event loop. An exception of `onChunk` ends it. @throws GatewayError wrong_content_encoding, body_too_large */
export async function decodeBody(body: Buffer, encoding: string, limit: number, onChunk?: (chunk: Buffer) => void): Promise<Buffer> {
  const coding = CODINGS.get(encoding.trim().toLowerCase())
  if (!coding) {
    const supported = [...CODINGS.keys()].join(', ')
    throw new GatewayError('wrong_content_encoding', `content-encoding '${encoding}' is not supported; use one of ${supported}, or none`)
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
