import type * as net from 'node:net'

const HTTP2_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Looks at the first bytes of a plain connection: HTTP/2's preface, or anything else. */
export function detectHttp2(
  socket: net.Socket, timeout: number, onDetected: (socket: net.Socket, isHttp2: boolean) => void,
): void {
  let seen: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => socket.destroy(), timeout)
  socket.once('close', () => clearTimeout(timer))
  const onEnd = () => socket.destroy()
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk])
    const length = Math.min(seen.length, HTTP2_PREFACE.length)
    const alike = seen.compare(HTTP2_PREFACE, 0, length, 0, length) === 0
    if (alike && length < HTTP2_PREFACE.length) return
    clearTimeout(timer)
    socket.off('data', onData).off('end', onEnd).pause()
    socket.unshift(seen)
    // An HTTP/2 session does not listen for the end of its connection: this ends the other half with it.
    if (alike) socket.allowHalfOpen = false
    onDetected(socket, alike)
    // It takes what was put back by itself, and loses it where the flow is on.
    if (!alike) socket.resume()
  }
  socket.on('data', onData).on('end', onEnd)
}
