import type * as net from 'node:net'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Looks at the first bytes of a plain connection: HTTP/2's preface, or anything else. */
export function sniff(
  socket: net.Socket, patience: number, hand: (socket: net.Socket, isHttp2: boolean) => void,
): void {
  let seen: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => socket.destroy(), patience)
  socket.once('close', () => clearTimeout(timer))
  const onEnd = () => socket.destroy()
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk])
    const length = Math.min(seen.length, PREFACE.length)
    const alike = seen.compare(PREFACE, 0, length, 0, length) === 0
    if (alike && length < PREFACE.length) return
    clearTimeout(timer)
    socket.off('data', onData).off('end', onEnd).pause()
    socket.unshift(seen)
    // An HTTP/2 session does not listen for the end of its connection: this ends the other half with it.
    if (alike) socket.allowHalfOpen = false
    hand(socket, alike)
    // It takes what was put back by itself, and loses it where the flow is on.
    if (!alike) socket.resume()
  }
  socket.on('data', onData).on('end', onEnd)
}
