import * as net from 'node:net'
import { KEY } from './gateway-yaml.ts'

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
}

/** Answers that came back whole, and in how many pieces. */
export interface LoadResult {
  units: number
  reads: number
}

/** A chat request of 0.9 kB that is answered with 0.5 kB. @param headers lines that end with CRLF */
export function requestLoad(headers = ''): Load {
  return { bytes: requestBytes(JSON_BODY, headers), units: 1 }
}

/** The same as a request of the messages protocol. */
export function messagesLoad(): Load {
  return { bytes: messagesBytes(JSON_BODY, ''), units: 1 }
}

/** The same as `streamLoad`, of the messages protocol; the upstream's path says how many chunks come. */
export function messagesStreamLoad(chunks: number): Load {
  return { bytes: messagesBytes(STREAMED_BODY.replace('"stream_options":{"include_usage":true},', ''), ''), units: chunks }
}

/**
 * A chat stream. Headers tell the upstream about it, and the body, which every proxy passes on.
 *
 * @param everyMs between two chunks; each tells when it was sent if `stamped`
 */
export function streamLoad(chunks: number, headers = '', { everyMs = 1, stamped = false } = {}): Load {
  const wishes = [`X-Chunks: ${chunks}`, `X-Every: ${everyMs}`, ...stamped ? ['X-Stamped: 1'] : []]
  const body = STREAMED_BODY.replace('{', `{"user":"${wishes.join(' ')}",`)
  return { bytes: requestBytes(body, headers + wishes.map(wish => `${wish}\r\n`).join('')), units: chunks }
}

/** A chat stream of the model `full` without end, as fast as it is read. */
export function fullSpeedLoad(): Load {
  return { bytes: requestBytes(STREAMED_BODY.replace('"m"', '"full"'), 'X-Full-Speed: 1\r\n'), units: 1 }
}

function messagesBytes(text: string, headers: string): Buffer {
  return requestBytes(text.replace('{', '{"max_tokens":50,'), headers, '/v1/messages')
}

function requestBytes(text: string, headers: string, path = '/v1/chat/completions'): Buffer {
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${KEY}\r\n` +
      `Content-Type: application/json\r\n${headers}Content-Length: ${text.length}\r\n\r\n${text}`,
  )
}

/** So many connections, each asking again as soon as it is answered, for a time in ms. */
export async function closedLoop(port: number, load: Load, connections: number, ms: number): Promise<LoadResult> {
  const until = performance.now() + ms
  return loop(port, load, connections, () => performance.now() < until)
}

/** As closedLoop, of several ports, which share the connections. @returns how many requests were answered */
export async function sharedLoop(ports: readonly number[], load: Load, connections: number, ms: number): Promise<number> {
  const works = await Promise.all(ports.map(port => closedLoop(port, load, connections / ports.length, ms)))
  return works.reduce((sum, { units }) => sum + units, 0)
}

/** As closedLoop, for a number of requests, which each connection has a part of. */
export async function countedLoop(port: number, load: Load, connections: number, requests: number): Promise<LoadResult> {
  let begun = connections
  return loop(port, load, Math.min(connections, requests), () => begun++ < requests)
}

/**
 * One request after the other on one connection, for a time in ms.
 *
 * @param awaited text that ends the time of a response, such as that of its first event; '' = its first byte
 * @returns milliseconds of each
 */
export async function timesAlone(port: number, load: Load, ms: number, awaited = ''): Promise<number[]> {
  const until = performance.now() + ms
  const times: number[] = []
  await drive(port, load, () => performance.now() < until, { units: 0, reads: 0, times, awaited })
  return times
}

const LAST_CHUNK = '\r\n0\r\n\r\n'

/** Finds where each response of a connection ends: by its content-length, or its last chunk. */
export class ResponseEnd {
  #text = ''
  /** Bytes to come; null = none has come, NaN = the last chunk tells. */
  #missing: number | null = null

  /** @param text what has come, one character a byte @returns was it the last of a response? */
  add(text: string): boolean {
    if (this.#missing === null) {
      this.#text += text
      const head = this.#text.indexOf('\r\n\r\n')
      if (head === -1) return false
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#text.slice(0, head))?.[1])
      this.#missing = length + head + 4 - this.#text.length
    } else if (Number.isNaN(this.#missing)) {
      this.#text = this.#text.slice(-LAST_CHUNK.length) + text
    } else {
      this.#missing -= text.length
    }
    if (!(this.#missing === 0 || (Number.isNaN(this.#missing) && this.#text.endsWith(LAST_CHUNK)))) return false
    this.#text = ''
    this.#missing = null
    return true
  }
}

async function loop(port: number, load: Load, connections: number, goOn: () => boolean): Promise<LoadResult> {
  const work = { units: 0, reads: 0 }
  await Promise.all(Array.from({ length: connections }, () => drive(port, load, goOn, work)))
  return work
}

/**
 * One connection. Rejects on any response but 200 and on an end before the response:
 * work that failed is cheap, and would flatter the proxy that failed it.
 *
 * @param goOn is asked at the end of each response
 * @param work is added to; `times` gets the milliseconds to what is awaited of each response
 */
function drive(
  port: number, { bytes, units }: Load, goOn: () => boolean, work: LoadResult & { readonly times?: number[], readonly awaited?: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    const end = new ResponseEnd()
    let isFirst = true
    let isAwaited = true
    let sentAt = 0
    const send = () => {
      sentAt = performance.now()
      socket.write(bytes)
    }
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the connection ended before the response did')))
    socket.on('data', data => {
      const text = data.toString('latin1')
      if (isAwaited && text.includes(work.awaited ?? '')) {
        work.times?.push(performance.now() - sentAt)
        isAwaited = false
      }
      if (isFirst && !text.startsWith('HTTP/1.1 200 ')) return reject(new Error(`unexpected answer: ${text}`))
      isFirst = false
      work.reads++
      if (!end.add(text)) return
      work.units += units
      isFirst = true
      isAwaited = true
      if (goOn()) {
        send()
      } else {
        resolve()
        socket.end()
      }
    })
    socket.once('connect', send)
  })
}
