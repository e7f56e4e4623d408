import type * as net from 'node:net'

const HTTP2_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Detects HTTP/2 by its preface, the first bytes of a plain connection (RFC 9113 section 3.4). */
export function detectHttp2(socket: net.Socket, timeout: number, onDetected: (socket: net.Socket, isHttp2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => socket.destroy(), timeout)
  socket.once('close', () => clearTimeout(timer))
  const onEnd = () => socket.destroy()
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk])
    const length = Math.min(seen.length, HTTP2_PREFACE.length)
    const isHttp2 = seen.compare(HTTP2_PREFACE, 0, length, 0, length) === 0
    if (isHttp2 && length < HTTP2_PREFACE.length) return
    clearTimeout(timer)
    socket.off('data', onData).off('end', onEnd).pause()
    socket.unshift(seen)
    // An HTTP/2 session does not listen for the end of its connection: this closes both halves.
    if (isHttp2) socket.allowHalfOpen = false
    onDetected(socket, isHttp2)
    // An HTTP/2 session reads the unshifted bytes itself, and would lose them in flowing mode.
    if (!isHttp2) socket.resume()
  }
  socket.on('data', onData).on('end', onEnd)
}
