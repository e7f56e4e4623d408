import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'
import { createSimulator, type Simulator, type SimulatorOptions } from '../../src/simulator/index.ts'

export interface Running {
  readonly simulator: Simulator
  readonly port: number
  readonly url: string
  /** POSTs JSON. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
}

/** A simulator on a free port; it is closed when the test ends. */
export async function start(t: Test, options?: SimulatorOptions): Promise<Running> {
  const simulator = createSimulator(options)
  simulator.listen(0, '127.0.0.1')
  await once(simulator, 'listening')
  t.teardown(async () => {
    simulator.close()
    simulator.closeAllConnections()
    await once(simulator, 'close')
  })
  const { port } = simulator.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return { simulator, port, url, post }
}

export interface SseEvent {
  readonly name: string | null
  /** Parsed JSON, or the text if it is not JSON. */
  readonly data: unknown
}

/** The events of a stream of server-sent events, comments left out. */
export function parseEvents(text: string): SseEvent[] {
  return text
    .split(/\r?\n\r?\n/)
    .filter(block => /^data:/m.test(block))
    .map(block => {
      const data = /^data: (.*)$/m.exec(block)?.[1] ?? ''
      return { name: /^event: (.*)$/m.exec(block)?.[1] ?? null, data: parsed(data) }
    })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** @returns the value at a path inside of JSON; undefined if there is none */
export function at(value: unknown, ...path: (string | number)[]): unknown {
  let here = value
  for (const key of path) {
    if (typeof here !== 'object' || here === null) return undefined
    here = (here as Record<string, unknown>)[key]
  }
  return here
}

/** All the strings at the same path of several events, put together. */
export function gather(events: readonly SseEvent[], ...path: (string | number)[]): string {
  return events
    .map(event => at(event.data, ...path))
    .filter(text => typeof text === 'string')
    .join('')
}

export interface RawAnswer {
  /** All received text. */
  readonly text: string
  /** How the connection ended: `end` (FIN) or the error's code. */
  readonly ended: string
}

/** A POST of JSON as bytes on a socket, without `connection: close`. */
export function rawPost(path: string, body: unknown, headers = ''): string {
  const text = JSON.stringify(body)
  const length = Buffer.byteLength(text)
  return (
    `POST ${path} HTTP/1.1\r\nhost: sim\r\ncontent-type: application/json\r\n${headers}` +
    `content-length: ${length}\r\n\r\n${text}`
  )
}

/** Sends bytes and reads until the server ends the connection. */
export function rawExchange(port: number, bytes: string): Promise<RawAnswer> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    let ended = 'end'
    socket.setEncoding('utf8')
    socket.on('data', chunk => {
      text += chunk
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      ended = error.code ?? error.message
    })
    socket.on('close', () => resolve({ text, ended }))
  })
}

/** Sends bytes and reads until the text that has come satisfies `enough`; the connection stays open. */
export function rawUntil(port: number, bytes: string, enough: (text: string) => boolean): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', chunk => {
      text += chunk
      if (enough(text)) resolve(socket)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`closed after ${text}`)))
  })
}

/** @returns the received body of a chunked response; `complete` if its last chunk has arrived */
export function dechunk(text: string): { body: string; complete: boolean } {
  let rest = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4))
  let body = ''
  for (;;) {
    const line = rest.indexOf('\r\n')
    if (line === -1) return { body, complete: false }
    const size = Number.parseInt(rest.toString('latin1', 0, line), 16)
    if (size === 0) return { body, complete: true }
    body += rest.toString('utf8', line + 2, line + 2 + size)
    rest = rest.subarray(line + 2 + size + 2)
  }
}

export const CHAT_PATH = '/v1/chat/completions'
export const CHAT = { messages: [{ role: 'user', content: '12345678' }] }

/** The bytes of a chat request for a stream of six words, with these behaviours. */
export function streamRequest(list: string): string {
  return rawPost(CHAT_PATH, { model: `sim,tokens=6,${list}`, ...CHAT, stream: true })
}

/** The bytes of a chat request for a whole response, with these behaviours. */
export function wholeRequest(list: string): string {
  return rawPost(CHAT_PATH, { model: `sim,${list}`, ...CHAT })
}
