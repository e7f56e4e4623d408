import { once } from 'node:events'
import * as net from 'node:net'
import * as tls from 'node:tls'
import type { Test } from 'tap'
import { KEY } from './gateway.ts'
import { startRawUpstream } from './upstream.ts'
import type { TestUpstream } from './upstream.ts'

/** How a connection ended: `end` = the peer closed it with FIN, `reset` = it broke. */
export type WireEnd = 'end' | 'reset'

/** A connection for tests: the received data, and promises for further data. */
export class Wire {
  readonly socket: net.Socket
  /** Settles when the peer has closed or reset the connection. */
  readonly ended: Promise<WireEnd>
  #received: Buffer[] = []
  #waiting: (() => void)[] = []
  #over = false

  constructor(socket: net.Socket) {
    this.socket = socket
    const { promise, resolve } = Promise.withResolvers<WireEnd>()
    this.ended = promise
    let how: WireEnd = 'reset'
    socket.on('data', (chunk: Buffer) => {
      this.#received.push(chunk)
      this.#wake()
    })
    socket.on('error', () => {})
    const over = () => {
      this.#over = true
      this.#wake()
      resolve(how)
    }
    socket.once('end', () => {
      how = 'end'
      over()
    })
    socket.once('close', over)
  }

  /** All received bytes that are not consumed, one character for each byte. */
  get text(): string {
    if (this.#received.length > 1) this.#received = [Buffer.concat(this.#received)]
    return this.#received[0]?.toString('latin1') ?? ''
  }

  send(text: string): void {
    this.socket.write(text, 'latin1')
  }

  /** Resolves with the text so far when it matches; rejects if the connection ends before. */
  async until(pattern: RegExp): Promise<string> {
    for (;;) {
      const { text } = this
      if (pattern.test(text)) return text
      if (this.#over) {
        throw new Error(`the connection ended before ${pattern}; it brought ${JSON.stringify(text)}`)
      }
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
  }

  /** Drops the received data. */
  clear(): void {
    this.#received = []
  }

  /** Consumes one complete request, whose body length is in Content-Length. */
  async request(): Promise<{ head: string; body: string }> {
    await this.until(/\r\n\r\n/)
    const [head = ''] = this.text.split('\r\n\r\n', 1)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const size = head.length + 4 + length
    while (this.text.length < size) {
      if (this.#over) throw new Error('the connection ended before the whole request')
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
    const { text } = this
    this.#received = [Buffer.from(text.slice(size), 'latin1')]
    return { head, body: text.slice(head.length + 4, size) }
  }

  /** Consumes the next request, or returns null if the connection ends before a request. */
  async nextRequest(): Promise<{ head: string; body: string } | null> {
    while (this.text === '') {
      if (this.#over) return null
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
    return this.request()
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

/**
 * A plain connection to a gateway; it is closed when the test ends.
 *
 * @param protocols to offer by ALPN
 */
export async function connect(t: Test, url: string, ca?: string, protocols: string[] = []): Promise<Wire> {
  const { hostname, port, protocol } = new URL(url)
  const secure = protocol === 'https:'
  const socket = secure
    ? tls.connect({ port: Number(port), host: hostname, ALPNProtocols: protocols, ...(ca === undefined ? {} : { ca }) })
    : net.connect(Number(port), hostname)
  t.teardown(() => socket.destroy())
  await once(socket, secure ? 'secureConnect' : 'connect')
  return new Wire(socket)
}

/** The bytes of a POST with a JSON body. */
export function post(path: string, body: unknown, headers: readonly string[] = []): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const lines = [
    `POST ${path} HTTP/1.1`, 'Host: gateway', `Authorization: Bearer ${KEY}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`, ...headers, '', '',
  ]
  return lines.join('\r\n') + Buffer.from(text).toString('latin1')
}

/** One chunk of a chunked body. */
export function chunk(text: string): string {
  return `${Buffer.byteLength(text, 'latin1').toString(16)}\r\n${text}\r\n`
}

/** An upstream on plain connections, each of which the test serves; an exception fails the test. */
export function startWireUpstream(t: Test, play: (wire: Wire) => Promise<void>): Promise<TestUpstream> {
  return startRawUpstream(t, socket => {
    play(new Wire(socket)).catch((error: unknown) => t.fail(`the upstream's play: ${String(error)}`))
  })
}

export const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'

/** A configuration with one upstream whose streams are not changed. */
export function proxyTo(url: string, rest = ''): string {
  return `upstreams: { up: { url: "${url}", usage: as_is } }\nroutes: [{ to: up }]\n${rest}\n`
}
