import type { Edit } from '../shared/splice.ts'
import { appended, fieldsOf, lessened } from '../shared/body.ts'
import { objectIn, says, withBefore } from '../shared/resumable-stream.ts'
import type { Before, Dialect, JoinedEvents, Json } from '../shared/resumable-stream.ts'

/** What one event adds to the text of a message. */
export function messagesText(event: Json): string {
  if (event['type'] === 'content_block_start') return textIn(objectIn(event, 'content_block'))
  return event['type'] === 'content_block_delta' ? textIn(objectIn(event, 'delta')) : ''
}

/** Why the request asks for something that cannot be continued; null = it does not. */
export function messagesObstacle(request: Json): string | null {
  if (says(request['output_format']) || says(objectIn(request, 'output_config')['format'])) {
    return 'structured output was asked for'
  }
  const thinking = objectIn(request, 'thinking')['type']
  const thinks = thinking !== undefined && thinking !== 'disabled'
  if (thinks) return 'thinking was asked for, which allows no prefill'
  return Array.isArray(request['messages']) ? null : 'the request has no messages'
}

/** The messages protocol: numbered content blocks between message_start and message_stop. */
export class MessagesDialect implements Dialect {
  finished = false
  readonly missing = null
  ending = frame({ type: 'message_stop' })
  #started = false
  /** Number of the text block that is open; null = none is. */
  #open: number | null = null
  /** Number of the next block. */
  #next = 0

  read(event: Json): string | null {
    switch (event['type']) {
      case 'message_start':
        this.#started = true
        return null
      case 'content_block_start': {
        const index = Number(event['index'])
        this.#open = index
        this.#next = index + 1
        const type = objectIn(event, 'content_block')['type']
        return type === 'text' ? null : `a block of the type ${String(type)} is under way`
      }
      case 'content_block_delta': {
        const type = objectIn(event, 'delta')['type']
        return type === 'text_delta' ? null : `a delta of the type ${String(type)} is under way`
      }
      case 'content_block_stop':
        this.#open = null
        return null
      case 'message_delta':
        if (this.completes(event)) this.finished = true
        return null
      case 'message_stop':
        this.ending = ''
        return null
      default:
        return null
    }
  }

  completes(event: Json): boolean {
    return event['type'] === 'message_delta' && says(objectIn(event, 'delta')['stop_reason'])
  }

  edits(body: Buffer, text: string, spent: number): Edit[] {
    const fields = fieldsOf(body, ['messages', 'max_tokens'])
    return [
      ...text === '' ? [] : appended(body, fields.get('messages'), { role: 'assistant', content: text }),
      ...lessened(body, [fields.get('max_tokens')], spent),
    ]
  }

  joined(before: () => Before): JoinedEvents {
    const numbers = new Map<unknown, number>()
    /** What the upstream said of its input at the start; the client hears of it at the end. */
    let started: Json = {}
    let isFirst = true

    /** Text blocks that have said nothing yet: an empty one is nobody's. */
    const silent = new Map<unknown, Json>()
    const start = (event: Json, text: (part: string) => string): Json[] => {
      const block = objectIn(event, 'content_block')
      const isText = block['type'] === 'text'
      const goesOn = isFirst && isText && this.#open !== null
      const before = isFirst && !isText && this.#open !== null
        ? [{ type: 'content_block_stop', index: this.#open }]
        : []
      isFirst = false
      const first = isText ? text(textIn(block)) : ''
      if (!goesOn) {
        const begun = { ...event, ...isText && { content_block: { ...block, text: first } } }
        if (isText && first === '') silent.set(event['index'], begun)
        return isText && first === '' ? before : [...before, numbered(begun)]
      }
      const index = this.#open as number
      numbers.set(event['index'], index)
      if (first === '') return []
      return [{ type: 'content_block_delta', index, delta: { type: 'text_delta', text: first } }]
    }

    /** A block of its own gets the next number. */
    const numbered = (begun: Json): Json => {
      numbers.set(begun['index'], this.#next)
      return { ...begun, index: this.#next }
    }

    /** The beginning of the block that an event belongs to, where the client has not got it yet. */
    const spoken = (event: Json): Json[] => {
      const begun = silent.get(event['index'])
      silent.delete(event['index'])
      return begun === undefined ? [] : [numbered(begun)]
    }

    return {
      translate: (event, text) => {
        switch (event['type']) {
          case 'message_start':
            started = objectIn(objectIn(event, 'message'), 'usage')
            return this.#started ? [] : [event]
          case 'content_block_start':
            return start(event, text)
          case 'content_block_delta': {
            const delta = objectIn(event, 'delta')
            const isText = delta['type'] === 'text_delta'
            const part = isText ? text(textIn(delta)) : ''
            if (isText && part === '') return []
            const begun = spoken(event)
            const index = numbers.get(event['index']) ?? event['index']
            return [...begun, { ...event, index, ...isText && { delta: { ...delta, text: part } } }]
          }
          case 'content_block_stop':
            if (silent.delete(event['index'])) return []
            return [{ ...event, index: numbers.get(event['index']) ?? event['index'] }]
          case 'message_delta': {
            // There was nothing more to say, and the block that the first answer had begun is still open.
            const stop = this.#open === null ? [] : [{ type: 'content_block_stop', index: this.#open }]
            return [...stop, { ...event, usage: joinedUsage(started, objectIn(event, 'usage'), before()) }]
          }
          default:
            return [event]
        }
      },
      render: frame,
    }
  }
}

const INPUT_FIELDS = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']

/** The figures at the end, which replace those that the first answer's start has told. */
function joinedUsage(started: Json, ended: Json, before: Before): Json {
  const usage = { ...ended }
  for (const name of INPUT_FIELDS) {
    const figure = ended[name] ?? started[name]
    if (typeof figure === 'number') usage[name] = figure
  }
  const { inputTokens, cachedInputTokens, outputTokens } = before
  const written = (before.cacheWrite5mTokens ?? 0) + (before.cacheWrite1hTokens ?? 0)
  return withBefore(usage, {
    input_tokens: (inputTokens ?? 0) - (cachedInputTokens ?? 0) - written,
    output_tokens: outputTokens,
  }, { cache_read_input_tokens: cachedInputTokens, cache_creation_input_tokens: written })
}

function textIn({ text }: Json): string {
  return typeof text === 'string' ? text : ''
}

function frame(event: Json): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`
}
