import { once } from 'node:events'
import * as http2 from 'node:http2'
import * as net from 'node:net'
import type { Test } from 'tap'
import type { Certificate } from './certificate.ts'
import { KEY } from './gateway.ts'
import type { TestUpstream } from './upstream.ts'

/** An HTTP/2 session with a gateway: over TLS with a certificate, with prior knowledge without. */
export async function openSession(t: Test, url: string, ca?: string): Promise<http2.ClientHttp2Session> {
  if (ca !== undefined) return connected(t, http2.connect(url, { ca }))
  return (await openSessionOn(t, url)).session
}

/** Opens a session with prior knowledge on a TCP connection that the test can use. */
export async function openSessionOn(
  t: Test, url: string,
): Promise<{ session: http2.ClientHttp2Session; tcp: net.Socket }> {
  const { hostname, port } = new URL(url)
  const tcp = net.connect(Number(port), hostname)
  tcp.on('error', () => {})
  t.teardown(() => tcp.destroy())
  await once(tcp, 'connect')
  return { session: await connected(t, http2.connect(url, { createConnection: () => tcp })), tcp }
}

async function connected(t: Test, session: http2.ClientHttp2Session): Promise<http2.ClientHttp2Session> {
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  await once(session, 'connect')
  return session
}

/** A request on a session, as a stream that the test reads. */
export class H2Request {
  readonly stream: http2.ClientHttp2Stream
  /** Settles with the code of the RST_STREAM that ended it; 0 = a proper end. */
  readonly closed: Promise<number>
  readonly head: Promise<http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader>
  /** Has END_STREAM arrived? */
  ended = false
  text = ''
  #waiting: (() => void)[] = []

  constructor(
    session: http2.ClientHttp2Session, method: string, path: string,
    headers: http2.OutgoingHttpHeaders = {}, end = true,
  ) {
    this.stream = session.request(
      { ':method': method, ':path': path, 'x-api-key': KEY, ...headers },
      { endStream: end },
    )
    this.stream.on('error', () => {})
    this.head = new Promise(resolve => this.stream.once('response', resolve))
    this.closed = new Promise(resolve => this.stream.once('close', () => resolve(this.stream.rstCode)))
    this.stream.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1')
      this.#wake()
    })
    this.stream.once('end', () => {
      this.ended = true
    })
    this.stream.once('close', () => this.#wake())
  }

  /** Resolves with the text so far when it matches; rejects if the stream ends before. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.text)) {
      if (this.stream.closed) {
        throw new Error(`the stream ended before ${pattern}; it brought ${JSON.stringify(this.text)}`)
      }
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
    return this.text
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

/** A POST with a JSON body. */
export function postH2(
  session: http2.ClientHttp2Session, path: string, body: unknown, headers: http2.OutgoingHttpHeaders = {},
): H2Request {
  const request = new H2Request(
    session, 'POST', path, { 'content-type': 'application/json', ...headers }, false,
  )
  request.stream.end(JSON.stringify(body))
  return request
}

/** An upstream over TLS that accepts only HTTP/2. It is closed when the test ends. */
export async function startHttp2Upstream(
  t: Test, certificate: Certificate,
  onStream: (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void,
): Promise<TestUpstream & { sessions: Set<http2.ServerHttp2Session> }> {
  const server = http2.createSecureServer({ cert: certificate.cert, key: certificate.key })
  const sessions = new Set<http2.ServerHttp2Session>()
  server.on('session', session => {
    sessions.add(session)
    session.on('error', () => {}).once('close', () => sessions.delete(session))
  })
  server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  t.teardown(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return { url: `https://127.0.0.1:${port}`, port, sessions }
}
