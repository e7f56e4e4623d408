import * as net from 'node:net'
import { KEY } from './subjects.ts'

const JSON_BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(840) }] })
const STREAMED_BODY = JSON.stringify({
  model: 'm', stream: true, stream_options: { include_usage: true },
  messages: [{ role: 'user', content: 'Say x.' }],
})

/** What one connection sends, again and again. */
export interface Load {
  readonly bytes: Buffer
  /** What one response counts for. */
  readonly units: number
  /** The last bytes of a whole response. */
  readonly end: string
}

/** Answers that came back whole, and in how many pieces. */
export interface LoadResult {
  units: number
  reads: number
}

/** A chat request of 0.9 kB that is answered with 0.5 kB. @param headers lines that end with CRLF */
export function requestLoad(headers = ''): Load {
  return { bytes: requestBytes(JSON_BODY, headers), units: 1, end: '}}' }
}

/** The same as a request of the messages protocol. */
export function messagesLoad(): Load {
  const bytes = requestBytes(JSON_BODY.replace('{', '{"max_tokens":50,'), '').toString('latin1').replace('/v1/chat/completions', '/v1/messages')
  return { bytes: Buffer.from(bytes, 'latin1'), units: 1, end: '}}' }
}

/** A chat stream. @param everyMs between two chunks; each tells when it was sent if `stamped` */
export function streamLoad(chunks: number, headers = '', { everyMs = 1, stamped = false } = {}): Load {
  const wishes = `X-Chunks: ${chunks}\r\nX-Every: ${everyMs}\r\n${stamped ? 'X-Stamped: 1\r\n' : ''}`
  return { bytes: requestBytes(STREAMED_BODY, headers + wishes), units: chunks, end: '0\r\n\r\n' }
}

/** A chat stream of the model `full` without end, as fast as it is read. */
export function fullSpeedLoad(): Load {
  return { bytes: requestBytes(STREAMED_BODY.replace('"m"', '"full"'), 'X-Full-Speed: 1\r\n'), units: 1, end: '' }
}

function requestBytes(text: string, headers: string): Buffer {
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${KEY}\r\n` +
      `Content-Type: application/json\r\n${headers}Content-Length: ${text.length}\r\n\r\n${text}`,
  )
}

/** So many connections, each asking again as soon as it is answered, for a time in ms. */
export async function closedLoop(port: number, load: Load, connections: number, ms: number): Promise<LoadResult> {
  const work = { units: 0, reads: 0 }
  const until = performance.now() + ms
  await Promise.all(Array.from({ length: connections }, () => drive(port, load, until, work)))
  return work
}

/**
 * One connection. Rejects on any response but 200 and on an end before the response:
 * work that failed is cheap, and would flatter the proxy that failed it.
 */
function drive(port: number, { bytes, units, end }: Load, until: number, work: LoadResult): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    let tail = ''
    let isFirst = true
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`the connection ended before the response did: ${tail}`)))
    socket.on('data', data => {
      const text = data.toString('latin1')
      if (isFirst && !text.startsWith('HTTP/1.1 200 ')) return reject(new Error(`unexpected answer: ${text}`))
      isFirst = false
      work.reads++
      tail = (tail + text).slice(-end.length)
      if (tail !== end) return
      work.units += units
      tail = ''
      isFirst = true
      if (performance.now() < until) {
        socket.write(bytes)
      } else {
        resolve()
        socket.end()
      }
    })
    socket.write(bytes)
  })
}
