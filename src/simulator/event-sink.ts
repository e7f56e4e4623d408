import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { constants, createGzip } from 'node:zlib'
import type { Behaviour } from './behaviour.ts'

/** Where a script is played: a response or a WebSocket. */
export interface EventSink {
  /** Events may be sent several at once; where each is a message of its own, they may not. */
  readonly batches: boolean
  /**
   * Sends one event.
   *
   * @param resume called when the next may follow, if not at once
   * @returns true when the next may follow at once
   */
  send(event: string | Buffer, resume: () => void): boolean
  /**
   * The end that the transport calls a good one.
   *
   * @param complete the script was played to its end
   */
  end(complete: boolean): void
  /** Closes the connection without that end. */
  close(): void
  /** Resets the connection. */
  reset(): void
}

type Write = (bytes: string | Buffer, resume: () => void) => boolean

/**
 * A response whose head is written, as a stage. What `crlf`, `comments`,
 * `gzip` and `split` ask for happens here, in that order.
 *
 * @param sse server-sent events: `crlf` and `comments` apply
 * @param deliberate called before the connection is ended otherwise than it should
 */
export function responseSink(
  res: ServerResponse, behaviour: Behaviour, sse: boolean, deliberate: () => void,
): EventSink {
  const plain: Write = (bytes, resume) => {
    if (res.write(bytes)) return true
    res.once('drain', resume)
    return false
  }
  const cut = behaviour.split === undefined ? plain : inPieces(plain, behaviour.split)
  const zip = behaviour.gzip ? gzipped(cut) : null
  const write = zip?.write ?? cut
  const framed = sse && (behaviour.crlf || behaviour.comments)
  const close = () => afterWrites(res, deliberate, socket => socket.destroy())
  const end = () => {
    // The client waits for the rest that was promised: the connection has to tell it that none comes.
    if (behaviour.wrong_length) res.once('finish', close)
    res.end()
  }
  return {
    batches: true,
    send: (event, resume) => write(framed ? reframe(String(event), behaviour) : event, resume),
    end: () => zip ? zip.finish(end) : end(),
    close,
    reset: () => afterWrites(res, deliberate, resetSocket),
  }
}

/**
 * Resets a connection (RST). On a Unix socket, which knows no reset, it closes:
 * the peer finds the connection gone all the same.
 */
export function resetSocket(socket: Socket): void {
  if (socket.remoteAddress === undefined) socket.destroy()
  else socket.resetAndDestroy()
}

function reframe(event: string, behaviour: Behaviour): string {
  const text = behaviour.comments ? `: ping\n\n${event}` : event
  return behaviour.crlf ? text.replaceAll('\n', '\r\n') : text
}

/** A turn of the event loop between two pieces lets each leave on its own. */
function inPieces(write: Write, length: number): Write {
  return (bytes, resume) => {
    const whole = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
    let at = 0
    const next = () => {
      if (at >= whole.length) return resume()
      const piece = whole.subarray(at, at += length)
      if (write(piece, next)) setImmediate(next)
    }
    next()
    return false
  }
}

/** Each event is flushed, so that a reader can decode it when it comes. */
function gzipped(write: Write): { write: Write; finish(done: () => void): void } {
  const gzip = createGzip()
  let ready: Buffer[] = []
  gzip.on('data', (bytes: Buffer) => ready.push(bytes))
  const drain = (done: () => void) => {
    const bytes = Buffer.concat(ready)
    ready = []
    if (write(bytes, done)) done()
  }
  return {
    write: (bytes, resume) => {
      gzip.write(bytes)
      gzip.flush(constants.Z_SYNC_FLUSH, () => drain(resume))
      return false
    },
    finish: done => {
      gzip.once('end', () => drain(done)).end()
    },
  }
}

/** What was sent before must not be lost on the way out of this process. */
function afterWrites(res: ServerResponse, deliberate: () => void, act: (socket: Socket) => void): void {
  const { socket } = res.req
  socket.write('', () => {
    deliberate()
    act(socket)
  })
}
