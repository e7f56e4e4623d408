import type { Behaviour } from '../behaviour.ts'
import { event, template, TEXT } from '../event.ts'
import { count, record, string, type Json } from '../json.ts'
import { planOutput, textOf, words } from '../plan.ts'
import { promptTokens } from '../prompt.ts'
import { sse, type EventStream } from '../simulated-response.ts'
import type { SimulatorContext } from '../simulator-context.ts'
import { countUsage, figure } from '../usage.ts'
import type { WebSocketProtocol, Reply } from './websocket-session.ts'

/**
 * GET /v1/realtime: a session with text only. Audio from the client is ignored.
 *
 * @param model the model in the query
 */
export function realtimeProtocol(context: SimulatorContext, model: string): WebSocketProtocol {
  const id = (prefix: string) => context.id(prefix)
  const named = (data: Json): Json => ({ event_id: id('event_'), ...data })
  const say = (...events: Json[]): Reply => ({ kind: 'say', events: events.map(named) })
  const error = (status: number, message: string) => named(errorData(status, message))
  let session: Json = {
    type: 'realtime', object: 'realtime.session', id: id('sess_'), model, output_modalities: ['text'],
    instructions: '', tools: [], tool_choice: 'auto', max_output_tokens: 'inf',
  }
  let previous: string | null = null
  // Tokens of all items, because the prompt of each response is the whole conversation.
  let tokens = 0
  let response = ''

  const addItem = (given: Json): Reply => {
    const item = { id: id('item_'), object: 'realtime.item', status: 'completed', ...given }
    const before = previous
    previous = string(item.id)
    tokens += promptTokens(item)
    return say(
      { type: 'conversation.item.added', previous_item_id: before, item },
      { type: 'conversation.item.done', previous_item_id: before, item },
    )
  }
  const respond = (asked: Json): Reply => {
    response = id('resp_')
    const input = tokens + promptTokens(asked['instructions'] ?? session['instructions'])
    const limit = count(asked['max_output_tokens'] ?? session['max_output_tokens'], null)
    const item = id('item_')
    const before = previous
    previous = item
    const ids: Ids = { response, item, before, event: () => id('event_') }
    return { kind: 'play', model: '', script: behaviour => scriptOf(behaviour, ids, input, limit) }
  }
  return {
    initialEvents: () => [{ event_id: id('event_'), type: 'session.created', session }],
    error,
    reply: message => {
      switch (message['type']) {
        case 'session.update':
          session = { ...session, ...record(message['session']) }
          return say({ type: 'session.updated', session })
        case 'conversation.item.create': return addItem(record(message['item']))
        case 'input_audio_buffer.append': return say()
        case 'input_audio_buffer.clear': return say({ type: 'input_audio_buffer.cleared' })
        case 'input_audio_buffer.commit':
          return say({
            type: 'input_audio_buffer.committed', previous_item_id: previous, item_id: id('item_'),
          })
        case 'response.create': return respond(record(message['response']))
        case 'response.cancel': {
          const cancelled = responseObject(response, 'cancelled', [])
          return { kind: 'cancel', event: () => named({ type: 'response.done', response: cancelled }) }
        }
        default: return { kind: 'say', events: [error(400, 'This type of event is not understood.')] }
      }
    },
  }
}

interface Ids {
  readonly response: string
  readonly item: string
  /** The id of the previous item; null = this is the first item. */
  readonly before: string | null
  readonly event: () => string
}

function scriptOf(behaviour: Behaviour, ids: Ids, input: number, limit: number | null): EventStream {
  const plan = planOutput(behaviour, { limit, reasons: false, prefill: null })
  const text = textOf(plan)
  const emit = (type: string, data: Json) => event({ type, event_id: ids.event(), ...data })
  const item = (status: string, content: readonly Json[]) =>
    ({ id: ids.item, object: 'realtime.item', type: 'message', status, role: 'assistant', content })
  const at = { response_id: ids.response, item_id: ids.item, output_index: 0 }
  const part = { ...at, content_index: 0 }
  const done = item(plan.clipped ? 'incomplete' : 'completed', [{ type: 'output_text', text }])
  const events = function* () {
    yield emit('response.created', { response: responseObject(ids.response, 'in_progress', []) })
    yield emit('response.output_item.added', { ...at, item: item('in_progress', []) })
    yield emit('conversation.item.added', { previous_item_id: ids.before, item: item('in_progress', []) })
    yield emit('response.content_part.added', { ...part, part: { type: 'text', text: '' } })
    // Every event needs a unique identifier, including deltas.
    const fill = template(event({ type: 'response.output_text.delta', event_id: TEXT, ...part, delta: TEXT }))
    for (const piece of words(plan)) yield fill(ids.event(), piece)
    yield emit('response.output_text.done', { ...part, text })
    yield emit('response.content_part.done', { ...part, part: { type: 'text', text } })
    yield emit('conversation.item.done', { previous_item_id: ids.before, item: done })
    yield emit('response.output_item.done', { ...at, item: done })
  }
  const last = () => emit('response.done', {
    response: {
      ...responseObject(ids.response, plan.clipped ? 'incomplete' : 'completed', [done]),
      usage: realtimeUsage(behaviour, input, plan.tokens),
    },
  })
  return sse(events(), last, () => emit('error', errorData(503, 'The simulated model is overloaded.')))
}

function errorData(status: number, message: string): Json {
  const type = status < 500 ? 'invalid_request_error' : 'server_error'
  return { type: 'error', error: { type, code: null, message, param: null, event_id: null } }
}

function responseObject(id: string, status: string, output: readonly Json[]): Json {
  return {
    object: 'realtime.response', id, status, status_details: null, output, output_modalities: ['text'],
    metadata: null, usage: null,
  }
}

function realtimeUsage(behaviour: Behaviour, input: number, output: number): Json | null {
  if (behaviour.usage === 'none') return null
  const counts = countUsage(behaviour, input, output, 0)
  const [inputs, cached, outputs] =
    [counts.input, counts.cached, counts.output].map(tokens => figure(behaviour, tokens))
  return {
    total_tokens: figure(behaviour, counts.input + counts.output),
    input_tokens: inputs,
    input_token_details: {
      text_tokens: inputs, audio_tokens: 0, image_tokens: 0, cached_tokens: cached,
      cached_tokens_details: { text_tokens: cached, audio_tokens: 0, image_tokens: 0 },
    },
    output_tokens: outputs,
    output_token_details: { text_tokens: outputs, audio_tokens: 0 },
  }
}
