import type * as net from 'node:net'

const HTTP2_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Detects HTTP/2 on a plain connection by the preface, which is the first bytes (RFC 9113 section 3.4). */
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
    // Close both directions when the client closes one, because an HTTP/2 session does not notice the end of its connection.
    if (isHttp2) socket.allowHalfOpen = false
    onDetected(socket, isHttp2)
    // An HTTP/2 session itself reads the unshifted bytes. In flowing mode it would lose them.
    if (!isHttp2) socket.resume()
  }
  socket.on('data', onData).on('end', onEnd)
}
