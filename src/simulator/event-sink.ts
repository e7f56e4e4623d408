import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { constants, createGzip } from 'node:zlib'
import type { Behaviour } from './behaviour.ts'

/** Receives the events of a script. A sink is a response or a WebSocket. */
export interface EventSink {
  /** true if several events can be sent together; false = each event is a separate message. */
  readonly batches: boolean
  /**
   * Sends one event.
   *
   * @param resume called when the next event may be sent, if the result is false
   * @returns true = the next event may be sent at once
   */
  send(event: string | Buffer, resume: () => void): boolean
  /**
   * Ends the response in the regular way of the transport.
   *
   * @param complete true if all events of the script were sent
   */
  end(complete: boolean): void
  /** Closes the connection without the regular end. */
  close(): void
  /** Resets the connection. */
  reset(): void
}

type Write = (bytes: string | Buffer, resume: () => void) => boolean

/**
 * Makes an event sink of a response whose head has been written. Applies `crlf`, `comments`, `gzip` and `split`, in that order.
 *
 * @param sse true for server-sent events, to which `crlf` and `comments` apply
 * @param deliberate called before the sink ends the connection irregularly
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
    // Close the connection, because the client waits for more bytes: the announced length is too high.
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

/** Resets a connection (RST). A Unix socket cannot be reset, so it is closed. */
export function resetSocket(socket: Socket): void {
  if (socket.remoteAddress === undefined) socket.destroy()
  else socket.resetAndDestroy()
}

function reframe(event: string, behaviour: Behaviour): string {
  const text = behaviour.comments ? `: ping\n\n${event}` : event
  return behaviour.crlf ? text.replaceAll('\n', '\r\n') : text
}

/** Waits for a turn of the event loop between two pieces, so that each piece is a separate write. */
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

/** Compresses. Each event is flushed, so that a client can decode it at once. */
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

/** Calls `act` when all earlier bytes have left the process. */
function afterWrites(res: ServerResponse, deliberate: () => void, act: (socket: Socket) => void): void {
  const { socket } = res.req
  socket.write('', () => {
    deliberate()
    act(socket)
  })
}
