import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { BehaviourError, type Behaviour } from '../behaviour.ts'
import { resetSocket, type EventSink } from '../event-sink.ts'
import { record, type Json } from '../json.ts'
import { play } from '../play.ts'
import type { EventStream } from '../simulated-response.ts'
import { behaviourOf, type SimulatorContext } from '../simulator-context.ts'

/** A protocol over a WebSocket: its first events, and its replies to messages. */
export interface WebSocketProtocol {
  /** Events that are sent when the connection opens. */
  readonly initialEvents: () => readonly Json[]
  /** Returns the reply to one message. */
  readonly reply: (message: Json) => Reply
  /** Creates the event that reports an error. */
  readonly error: (status: number, message: string) => Json
}

/**
 * What to do after a message. `say`: send events at once; `play`: send a response; `cancel`: stop the running response, and send an event.
 */
export type Reply =
  | { readonly kind: 'say'; readonly events: readonly Json[] }
  | { readonly kind: 'play'; readonly model: string; readonly script: (behaviour: Behaviour) => EventStream }
  | { readonly kind: 'cancel'; readonly event: () => Json }

export interface SessionOptions {
  readonly client: WebSocket
  /** The socket of the WebSocket. */
  readonly socket: Socket
  readonly protocol: WebSocketProtocol
  /** The behaviours of the handshake. */
  readonly behaviour: Behaviour
}

/**
 * Serves a session until the connection closes. Only one response is sent at a time. Its behaviours are those of its own model, which the
 * behaviours of the handshake override.
 *
 * @param onOutcome called before the connection closes; `aborted` = a response is cut off
 */
export function runSession(
  context: SimulatorContext, parties: SessionOptions, onOutcome: (outcome: 'completed' | 'aborted') => void,
): void {
  const { client, protocol: dialogue } = parties
  let stop: (() => void) | null = null
  const say = (event: Json) => client.send(JSON.stringify(event))
  const idle = () => {
    stop = null
    onOutcome('completed')
  }
  const stage = webSocketSink(parties, idle)
  const begin = (reply: Reply & { kind: 'play' }) => {
    const behaviour = { ...behaviourOf(context, reply.model, ''), ...parties.behaviour }
    if (stop) return say(dialogue.error(400, 'A response is already on its way.'))
    if (behaviour.reset) return stage.reset()
    if (behaviour.close) return stage.close()
    const { status } = behaviour
    if (status !== undefined) return say(dialogue.error(status, `Simulated error ${status}.`))
    onOutcome('aborted')
    stop = () => {}
    const playing = play(reply.script(behaviour), behaviour, stage)
    // If the response has no events, it has already ended.
    if (stop !== null) stop = playing
  }
  const hear = (message: Json) => {
    const reply = dialogue.reply(message)
    if (reply.kind === 'play') return begin(reply)
    if (reply.kind === 'say') return reply.events.forEach(say)
    if (stop === null) return say(dialogue.error(400, 'There is no response to cancel.'))
    stop()
    idle()
    say(reply.event())
  }
  client.on('message', data => {
    try {
      hear(record(JSON.parse(data.toString())))
    } catch (thrown) {
      const refused = thrown instanceof SyntaxError || thrown instanceof BehaviourError
      if (refused) say(dialogue.error(400, thrown.message))
      else say(dialogue.error(500, `The simulator failed: ${String(thrown)}`))
    }
  })
  // Ignore the error, because the event `close` follows and is handled.
  client.on('error', () => {})
  client.on('close', () => stop?.())
  dialogue.initialEvents().forEach(say)
}

/**
 * Makes an event sink of a WebSocket. Each message is the data of the server-sent event that HTTP would have. The connection stays open
 * after a complete response.
 */
function webSocketSink({ client, socket }: SessionOptions, idle: () => void): EventSink {
  return {
    batches: false,
    send: (event, resume) => {
      const text = event.toString()
      client.send(text.slice(text.indexOf('data: ') + 'data: '.length, -2), error => {
        if (!error) resume()
      })
      return false
    },
    end: complete => {
      idle()
      if (!complete) client.close(1000)
    },
    close: () => {
      idle()
      client.terminate()
    },
    reset: () => {
      idle()
      resetSocket(socket)
    },
  }
}
