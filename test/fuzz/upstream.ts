import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import { bodyOf } from '../support/upstream.ts'
import { decodedAs, encodedAs } from './codings.ts'
import { honestFigures, parsedOr } from './figures.ts'
import { PLAIN, bytesOf, contentTypeOf } from './responses.ts'
import type { ResponseSeed, Wire } from './responses.ts'
import { renderItems } from './template.ts'

/** What an upstream sends, written down whole. */
export interface ScriptedResponse extends ResponseSeed {
  readonly wire: Wire
}

/** One request that reached an upstream, and what it got. */
export interface Exchange {
  readonly kind: string
  readonly path: string
  readonly body: Buffer
  readonly response: ScriptedResponse
  /** Without its content coding. */
  readonly bytes: Buffer
}

/** Chooses the response to the `number`th request of a case. */
export type Script = (kind: string, number: number) => ScriptedResponse

/** Of one WebSocket: all that is sent and received is kept until the case is over. */
const MOST_RESPONSES = 100
const COMPLETED = '{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}'

/** All upstreams of the gateway: one server, which knows by the path what it is asked. */
export class Upstreams {
  readonly url: string
  /** Those of the case that runs. */
  exchanges: Exchange[] = []
  script: Script | null = null
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (req: IncomingMessage, res: ServerResponse) => void this.#respond(req, res).catch(() => res.destroy()))
    new WebSocketServer({ server }).on('connection', (socket, req) => this.#converse(socket, req.url ?? ''))
  }

  static async start(): Promise<Upstreams> {
    const server = createServer({ requestTimeout: 0 }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Upstreams(server)
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url ?? ''
    const body = decodedAs(req.headers['content-encoding'], await bodyOf(req)) ?? Buffer.alloc(0)
    const kind = kindOf(path, body)
    const response = this.script?.(kind, this.exchanges.length)
    if (response === undefined) return void res.writeHead(503).end()
    const { wire, status } = response
    const bytes = bytesOf(response, wire, honestFigures(body, kind.startsWith('completions')))
    this.exchanges.push({ kind, path, body, response, bytes })
    const encoded = encodedAs(wire.encoding, bytes)
    res.on('error', () => {}).writeHead(status, {
      'content-type': contentTypeOf(response), ...wire.encoding !== '' && { 'content-encoding': wire.encoding }, ...wire.piece === 0 && status !== 204 && { 'content-length': encoded.length },
    })
    await send(res, wire.cut === null ? encoded : encoded.subarray(0, Math.floor(encoded.length * wire.cut / 1000)), wire.piece)
    if (wire.cut === null) res.end()
    else res.destroy()
  }

  /** In a WebSocket each message gets the events of one response, of many messages the first ones. */
  #converse(socket: WebSocket, path: string): void {
    let messages = 0
    socket.on('error', () => {}).on('message', (data: Buffer) => {
      if (++messages > MOST_RESPONSES) return socket.send(COMPLETED)
      const response = this.script?.('responses stream', this.exchanges.length) ?? { status: 200, framing: 'sse', body: [], wire: PLAIN }
      const events = renderItems(response.body, honestFigures(data, false))
      this.exchanges.push({ kind: 'socket', path, body: data, response, bytes: Buffer.from(events.join('\n')) })
      const last = response.wire.cut === null ? events.length : Math.floor(events.length * response.wire.cut / 1000)
      for (const event of events.slice(0, last)) socket.send(event)
      if (response.wire.cut === null) socket.send(COMPLETED)
      else socket.terminate()
    })
  }
}

/** Pieces of which no two come in one packet, as far as the client reads them in between. */
async function send(res: ServerResponse, bytes: Buffer, piece: number): Promise<void> {
  const size = piece === 0 ? bytes.length : Math.max(piece, Math.ceil(bytes.length / MOST_PIECES))
  for (let at = 0; at < bytes.length && !res.destroyed; at += size) {
    const { promise, resolve } = Promise.withResolvers<void>()
    res.write(bytes.subarray(at, at + size), () => resolve())
    res.once('close', resolve)
    await promise
    res.off('close', resolve)
  }
}

const MOST_PIECES = 200

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/\/chat\/completions/, 'chat'], [/\/completions/, 'completions'], [/\/embeddings/, 'embeddings'], [/\/responses\/input_tokens/, 'count_tokens'], [/\/responses/, 'responses'],
  [/count[_-]tokens/i, 'count_tokens'], [/:countTokens/, 'countTokens'], [/\/messages\/batches|\/batches/, 'other'], [/\/messages|ublishers\/anthropic/, 'messages'],
  [/:generateContent|:streamGenerateContent/, 'generate'], [/:embedContent/, 'embedContent'], [/:batchEmbedContents/, 'batchEmbedContents'], [/:predict/, 'predict'],
  [/\/invoke-with-response-stream/, 'invoke'], [/\/invoke/, 'messages'], [/\/converse/, 'converse'], [/\/images\//, 'images'], [/\/audio\/speech/, 'speech'], [/\/audio\//, 'transcriptions'], [/\/interactions/, 'interactions'],
]

/** @returns a key of RESPONSES */
function kindOf(path: string, body: Buffer): string {
  const kind = KINDS.find(([pattern]) => pattern.test(path))?.[1] ?? 'other'
  if (/:streamGenerateContent/.test(path)) return /alt=sse/.test(path) ? 'generate stream' : 'generate array'
  if (/-stream(?:\?|$)/.test(path)) return `${kind} stream`
  return (parsedOr(null, body) as { stream?: unknown } | null)?.stream === true ? `${kind} stream` : kind
}
