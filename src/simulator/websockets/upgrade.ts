import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { BehaviourError, type Behaviour } from '../behaviour.ts'
import { faultyResponse, refusalResponse, Refusal } from '../error.ts'
import { resetSocket } from '../event-sink.ts'
import { realtimeProtocol } from './realtime.ts'
import { responsesProtocol } from './responses-websocket.ts'
import type { CompleteResponse } from '../simulated-response.ts'
import { behaviourOf, behaviourHeader, splitTarget, type SimulatorContext } from '../simulator-context.ts'
import { runSession, type WebSocketProtocol } from './websocket-session.ts'

/** Serves all WebSockets of one simulator. */
export interface Upgrader {
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Closes every connection at once. */
  closeAll(): void
}

/**
 * Accepts WebSockets at /v1/realtime and /v1/responses. The behaviours in the `x-simulate` header and in the query's `model` apply to the
 * handshake and to each later response. A connection counts as one request.
 */
export function upgrader(context: SimulatorContext): Upgrader {
  const server = new WebSocketServer({ noServer: true })
  return {
    // A cast is needed: node:http declares a Duplex, but passes a Socket.
    upgrade: (incoming, socket, head) => handleHandshake(context, server, incoming, socket as Socket, head),
    closeAll: () => {
      for (const client of server.clients) client.terminate()
    },
  }
}

function handleHandshake(
  context: SimulatorContext, server: WebSocketServer, incoming: IncomingMessage, socket: Socket, head: Buffer,
): void {
  const [path, query] = splitTarget(incoming.url ?? '/')
  const model = new URLSearchParams(query).get('model') ?? ''
  const count = context.counter.begin()
  // If the connection closes during the handshake, the client has closed it.
  let outcome: 'completed' | 'aborted' = 'aborted'
  let status = 0
  let stop = () => {}
  // Ignore the error, because the event `close` follows and is handled.
  socket.on('error', () => {})
  socket.once('end', () => socket.end())
  socket.once('close', () => {
    stop()
    count({ method: 'GET', path, model }, outcome, status)
  })

  const respondWith = (instead: CompleteResponse) => {
    outcome = 'completed'
    status = instead.status
    socket.end(serializeResponse(instead))
  }
  const go = (behaviour: Behaviour, early: Buffer) => {
    if (behaviour.reset || behaviour.close) {
      outcome = 'completed'
      return behaviour.reset ? resetSocket(socket) : void socket.destroy()
    }
    if (behaviour.status !== undefined || behaviour.error_200) {
      return respondWith(faultyResponse('chat', behaviour, Math.floor(context.now() / 1000), ''))
    }
    const dialogue = protocolOf(context, path, model, incoming)
    server.handleUpgrade(incoming, socket, early, client => {
      status = 101
      outcome = 'completed'
      runSession(context, { client, socket, protocol: dialogue, behaviour }, left => {
        outcome = left
      })
    })
  }
  try {
    const behaviour = behaviourOf(context, model, behaviourHeader(incoming))
    if (behaviour.headers_delay === undefined) return go(behaviour, head)
    stop = delayHandshake(behaviour.headers_delay, socket, early => go(behaviour, Buffer.concat([head, ...early])))
  } catch (thrown) {
    if (!(thrown instanceof BehaviourError)) throw thrown
    respondWith(refusalResponse('chat', new Refusal(400, thrown.message), ''))
  }
}

/**
 * Delays the handshake, but reads meanwhile: a connection that is not read does not report that the client disconnected.
 *
 * @returns a function that cancels the delay
 */
function delayHandshake(ms: number, socket: Socket, done: (early: Buffer[]) => void): () => void {
  const early: Buffer[] = []
  const keep = (bytes: Buffer) => early.push(bytes)
  const timer = setTimeout(() => {
    socket.off('data', keep)
    done(early)
  }, ms)
  socket.on('data', keep)
  return () => clearTimeout(timer)
}

function protocolOf(context: SimulatorContext, path: string, model: string, incoming: IncomingMessage): WebSocketProtocol {
  return path === '/v1/realtime' ? realtimeProtocol(context, model) : responsesProtocol(context, incoming)
}

/** A response as text, in place of the upgrade, because no response object exists. */
function serializeResponse({ status, headers, body }: CompleteResponse): string {
  const all = { ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  const first = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Simulated'}\r\n`
  return `${first}${lines.join('')}\r\n${body.toString()}`
}
