import { Agent, request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { WebSocket } from 'ws'
import { decodedAs } from './codings.ts'

/** What a client got. */
export interface Received {
  /** 0 = no response came, or none that is HTTP. */
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Without its content coding; null = it is not as that says. */
  readonly body: Buffer | null
  /** Did it end as HTTP says that it should? */
  readonly isWhole: boolean
  /** Did it take longer than any response may? */
  readonly hangs: boolean
}

/** Milliseconds: above what the gateway allows for a request, however slow the machine is. */
const PATIENCE = 300_000

const AGENT = new Agent({ keepAlive: true, maxSockets: 64 })
/** An address that no client is counted by. */
const NOTHING: Received = { status: 0, headers: {}, body: Buffer.alloc(0), isWhole: false, hangs: false }

/** @param headers with the key. @returns the response, however it ends */
export function post(url: string, path: string, headers: Readonly<Record<string, string>>, body: Buffer): Promise<Received> {
  const { promise, resolve } = Promise.withResolvers<Received>()
  const { hostname, port } = new URL(url)
  const req = request({ hostname, port, path, method: 'POST', agent: AGENT, headers: { ...headers, 'content-length': String(body.length) } })
  const clock = setTimeout(() => {
    resolve({ ...NOTHING, hangs: true })
    req.destroy()
  }, PATIENCE)
  const finish = (received: Received): void => {
    clearTimeout(clock)
    resolve(received)
  }
  req.on('error', () => finish(NOTHING))
  req.on('response', res => {
    const chunks: Buffer[] = []
    res.on('data', (chunk: Buffer) => void chunks.push(chunk)).on('error', () => {})
    res.on('close', () => finish({ status: res.statusCode ?? 0, headers: res.headers, body: decodedAs(res.headers['content-encoding'], Buffer.concat(chunks)), isWhole: res.complete, hangs: false }))
  })
  req.end(body)
  return promise
}

/** Waits until a gateway has settled all its requests, or has ended: what a client leaves behind runs on for a moment. */
export async function untilSettled(url: string): Promise<void> {
  for (let running = 1; running > 0;) {
    try {
      const response = await fetch(`${url}/api/status`)
      running = (await response.json() as { running: number }).running
    } catch {
      return
    }
  }
}

/** Sends messages in a WebSocket, and closes it when the last was responded to. */
export function converse(url: string, path: string, headers: Readonly<Record<string, string>>, messages: readonly string[]): Promise<Received> {
  const { promise, resolve } = Promise.withResolvers<Received>()
  const socket = new WebSocket(url.replace('http', 'ws') + path, { headers })
  const received: Buffer[] = []
  let waiting = messages.length
  let status = 0
  let from: IncomingHttpHeaders = {}
  const finish = (isWhole: boolean, hangs = false): void => {
    clearTimeout(clock)
    resolve({ status, headers: from, body: Buffer.concat(received), isWhole, hangs })
    socket.terminate()
  }
  const clock = setTimeout(() => finish(false, true), PATIENCE)
  socket.on('error', () => {}).on('close', () => finish(true))
  socket.on('upgrade', ({ headers: own }) => {
    status = 101
    from = own
  })
  socket.on('unexpected-response', (_req, res) => {
    status = res.statusCode ?? 0
    from = res.headers
    res.on('data', (chunk: Buffer) => void received.push(chunk)).on('close', () => finish(res.complete))
  })
  socket.on('open', () => {
    for (const message of messages) socket.send(message)
  })
  socket.on('message', (data: Buffer) => {
    received.push(data)
    if (data.includes('"response.completed"') && --waiting <= 0) socket.close()
  })
  return promise
}
