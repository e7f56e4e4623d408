import { appendToList, fieldsOf, reduceLimits } from '../json/body-edits.ts'
import type { Field } from '../json/json-scan.ts'
import { parseRequest } from '../../base/json-size.ts'
import type { CallReader } from '../events/call-reader.ts'
import { objectIn, objectsIn, hasValue, addPriorUsage } from '../events/resumable-stream.ts'
import type { PriorUsage, StreamProtocol, EventTranslation, Json } from '../events/resumable-stream.ts'
import { replaceValues, type Edit } from '../json/splice.ts'
import { tokensOfBytes } from '../usage/tokens-of-bytes.ts'

export function messagesText(event: Json): string {
  if (event['type'] === 'content_block_start') return textIn(objectIn(event, 'content_block'))
  return event['type'] === 'content_block_delta' ? textIn(objectIn(event, 'delta')) : ''
}

/** Why the response to the request cannot be continued; null = it can. */
export function messagesObstacle(request: Json): string | null {
  if (hasValue(request['output_format']) || hasValue(objectIn(request, 'output_config')['format'])) return 'structured output was asked for'
  return Array.isArray(request['messages']) ? null : 'the request has no messages'
}

export function createMessagesCallReader(): CallReader {
  let isOpen = false
  return event => {
    if (event['type'] === 'content_block_start' && objectIn(event, 'content_block')['type'] === 'tool_use') {
      isOpen = true
      return 'starts'
    }
    // Blocks never overlap, so the next end of a block ends the call. A call without an end is as complete as it gets.
    if (!isOpen || event['type'] !== 'content_block_stop' && event['type'] !== 'message_delta') return 'within'
    isOpen = false
    return 'ends'
  }
}

const THINKING_BLOCKS: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking'])
const CONTINUABLE_DELTAS: ReadonlySet<unknown> = new Set(['text_delta', 'thinking_delta', 'signature_delta'])

/**
 * Continues text after complete thinking, without further thinking. Anthropic accepts no prefill with thinking
 * (platform.claude.com/docs/en/build-with-claude/extended-thinking, "Feature compatibility"), and no partial thinking block
 * (platform.claude.com/docs/en/build-with-claude/streaming, "Error recovery").
 */
export class MessagesStreamProtocol implements StreamProtocol {
  finished = false
  readonly missing = null
  endMarker = renderEvent({ type: 'message_stop' })
  #started = false
  underWay: string | null = null
  /** Number of the open content block; null = no block is open. */
  #openBlock: number | null = null
  /** Bytes of thinking that the client has received. */
  #thinkingBytes = 0
  #nextBlock = 0

  read(event: Json): string | null {
    switch (event['type']) {
      case 'message_start':
        this.#started = true
        return null
      case 'content_block_start': {
        const index = Number(event['index'])
        this.#openBlock = index
        this.#nextBlock = index + 1
        const type = objectIn(event, 'content_block')['type']
        if (THINKING_BLOCKS.has(type)) this.underWay = 'the stream broke inside of thinking'
        else if (type !== 'text') return `the stream has a block of the type ${String(type)}`
        return null
      }
      case 'content_block_delta': {
        const { type, thinking } = objectIn(event, 'delta')
        if (typeof thinking === 'string') this.#thinkingBytes += Buffer.byteLength(thinking)
        return CONTINUABLE_DELTAS.has(type) ? null : `the stream has a delta of the type ${String(type)}`
      }
      case 'content_block_stop':
        this.#openBlock = null
        this.underWay = null
        return null
      case 'message_delta':
        if (this.completes(event)) this.finished = true
        return null
      case 'message_stop':
        this.endMarker = ''
        return null
      default: return null
    }
  }

  completes(event: Json): boolean {
    return event['type'] === 'message_delta' && hasValue(objectIn(event, 'delta')['stop_reason'])
  }

  edits(body: Buffer, text: string, spent: number): Edit[] {
    const fields = fieldsOf(body, ['messages', 'max_tokens', 'thinking', 'context_management'])
    return [
      ...text === '' ? [] : appendToList(body, fields.get('messages'), { role: 'assistant', content: text }),
      ...reduceLimits(body, [fields.get('max_tokens')], spent + tokensOfBytes(this.#thinkingBytes)),
      ...this.#nextBlock === 0 ? [] : withoutThinking(body, fields),
    ]
  }

  #stopOfOpenBlock(): Json[] {
    return this.#openBlock === null ? [] : [{ type: 'content_block_stop', index: this.#openBlock }]
  }

  createTranslation(before: () => PriorUsage): EventTranslation {
    const numbers = new Map<unknown, number>()
    /** The usage in the upstream's `message_start`. The client gets this usage in `message_delta`. */
    let started: Json = {}
    let isFirst = true
    /** The starts of text blocks that have no text yet. They are held, because the client must not get an empty block. */
    const silent = new Map<unknown, Json>()
    const start = (event: Json, text: (part: string) => string): Json[] => {
      const block = objectIn(event, 'content_block')
      const isText = block['type'] === 'text'
      const goesOn = isFirst && isText && this.#openBlock !== null
      const before = isFirst && !isText ? this.#stopOfOpenBlock() : []
      isFirst = false
      const first = isText ? text(textIn(block)) : ''
      if (!goesOn) {
        const begun = { ...event, ...isText && { content_block: { ...block, text: first } } }
        if (isText && first === '') silent.set(event['index'], begun)
        return isText && first === '' ? before : [...before, numbered(begun)]
      }
      const index = this.#openBlock as number
      numbers.set(event['index'], index)
      if (first === '') return []
      return [{ type: 'content_block_delta', index, delta: { type: 'text_delta', text: first } }]
    }

    const numbered = (begun: Json): Json => {
      numbers.set(begun['index'], this.#nextBlock)
      return { ...begun, index: this.#nextBlock }
    }

    /** The start of the event's block, if the client has not received it. */
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
          case 'content_block_start': return start(event, text)
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
          case 'message_delta':
            // If the response added no block, the first response's open block ends here.
            return [...this.#stopOfOpenBlock(), { ...event, usage: totalUsage(started, objectIn(event, 'usage'), before()) }]
          default: return [event]
        }
      },
      render: renderEvent,
    }
  }
}

/** Edits that turn off thinking. They also turn off the clearing of earlier thinking, because Anthropic refuses it without thinking. */
function withoutThinking(body: Buffer, fields: ReadonlyMap<string, Field>): Edit[] {
  const thinking = fields.get('thinking')
  const management = fields.get('context_management')
  if (thinking?.type !== 'object') return []
  const edits = replaceValues([thinking], Buffer.from('{"type":"disabled"}'))
  if (management?.type !== 'object') return edits
  const value = parseRequest(body.toString('utf8', management.start, management.end)) as Json
  const kept = objectsIn(value, 'edits').filter(({ type }) => !String(type).startsWith('clear_thinking'))
  return [...edits, ...replaceValues([management], Buffer.from(JSON.stringify({ ...value, edits: kept })))]
}

const INPUT_FIELDS = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']

/** The usage of both responses. In the client's stream it replaces the usage of `message_start`. */
function totalUsage(started: Json, ended: Json, before: PriorUsage): Json {
  const usage = { ...ended }
  for (const name of INPUT_FIELDS) {
    const figure = ended[name] ?? started[name]
    if (typeof figure === 'number') usage[name] = figure
  }
  const { inputTokens, cachedInputTokens, outputTokens } = before
  const written = (before.cacheWrite5mTokens ?? 0) + (before.cacheWrite1hTokens ?? 0)
  return addPriorUsage(usage, {
    input_tokens: (inputTokens ?? 0) - (cachedInputTokens ?? 0) - written,
    output_tokens: outputTokens,
  }, { cache_read_input_tokens: cachedInputTokens, cache_creation_input_tokens: written })
}

function textIn({ text }: Json): string {
  return typeof text === 'string' ? text : ''
}

function renderEvent(event: Json): string {
  const { type } = event
  return `${typeof type === 'string' ? `event: ${type}\n` : ''}data: ${JSON.stringify(event)}\n\n`
}
