import { isObject } from '../../base/is-object.ts'
import { appendToList, fieldsOf, reduceLimits } from '../json/body-edits.ts'
import type { CallReader } from '../events/call-reader.ts'
import { objectIn, objectsIn, hasValue, addPriorUsage } from '../events/resumable-stream.ts'
import type { PriorUsage, StreamProtocol, EventTranslation, Json } from '../events/resumable-stream.ts'
import type { Edit } from '../json/splice.ts'

export function chatText(chunk: Json): string {
  const content = objectIn(objectsIn(chunk, 'choices')[0] ?? {}, 'delta')['content']
  return typeof content === 'string' ? content : ''
}

export function asksForSeveralChats({ n }: Json): boolean {
  return typeof n === 'number' && n > 1
}

/** Why the response to the request cannot be continued; null = it can. */
export function chatObstacle(request: Json): string | null {
  const { logprobs, audio, messages } = request
  if (asksForSeveralChats(request)) return 'several answers were asked for'
  if (logprobs === true) return 'log probabilities were asked for'
  if (isObject(audio)) return 'audio was asked for'
  const format = objectIn(request, 'response_format')['type']
  if (format !== undefined && format !== 'text') return 'structured output was asked for'
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined
  if (!isObject(last)) return 'the request has no messages'
  return last['role'] === 'assistant' ? 'the request ends with a message of the assistant itself' : null
}

/** Chunks do not tell that a call is complete: the next call or the finish does. */
export function createChatCallReader(): CallReader {
  let open: unknown = null
  return chunk => {
    const [choice] = objectsIn(chunk, 'choices')
    if (choice === undefined) return 'within'
    if (hasValue(choice['finish_reason'])) return 'ends'
    const delta = objectIn(choice, 'delta')
    const call = objectsIn(delta, 'tool_calls').at(-1)
    const name = call ? `tool ${Number(call['index'] ?? 0)}` : hasValue(delta['function_call']) ? 'function' : null
    if (name === null || name === open) return 'within'
    open = name
    return 'starts'
  }
}

const REASONING = ['reasoning_content', 'reasoning', 'reasoning_details']

export class ChatStreamProtocol implements StreamProtocol {
  readonly endMarker = 'data: [DONE]\n\n'
  readonly underWay = null
  finished = false
  missing: string | null = null
  /** Members that are equal in all chunks, taken from the first chunk with an id. */
  #identity: Json = {}
  #started = false
  #hasSeveralChoices = false

  constructor(request: Json) {
    const { include_usage: wantsUsage } = objectIn(request, 'stream_options')
    if (wantsUsage === true) this.missing = 'the usage that was asked for'
  }

  read(chunk: Json): string | null {
    const obstacle = this.#read(chunk)
    // Usage before `finish_reason` is incomplete, so only a later chunk delivers the requested usage.
    if (this.finished && isObject(chunk['usage'])) this.missing = null
    return obstacle
  }

  completes(chunk: Json): boolean {
    const { finished, missing } = this
    const isLast = finished || !this.#hasSeveralChoices && hasValue(objectsIn(chunk, 'choices')[0]?.['finish_reason'])
    return isLast && (missing === null || isObject(chunk['usage']))
  }

  #read(chunk: Json): string | null {
    // Azure sends empty ids in the first chunk: wait for a chunk with an id.
    if (hasValue(chunk['id']) && !hasValue(this.#identity['id'])) this.#identity = identityOf(chunk)
    const choices = objectsIn(chunk, 'choices')
    const [choice] = choices
    if (choice === undefined) return null
    if (choices.length > 1 || (choice['index'] ?? 0) !== 0) {
      this.#hasSeveralChoices = true
      this.finished = false
      return 'the stream has several choices'
    }
    this.#started = true
    const delta = objectIn(choice, 'delta')
    if (hasValue(choice['finish_reason']) && !this.#hasSeveralChoices) this.finished = true
    const { content } = delta
    if (hasValue(content) && typeof content !== 'string') return 'the stream has content that is not plain text'
    if (hasValue(delta['tool_calls']) || hasValue(delta['function_call'])) return 'the stream has a tool call'
    if (REASONING.some(name => hasValue(delta[name]))) return 'the stream has reasoning'
    if (hasValue(delta['refusal'])) return 'the stream has a refusal'
    if (hasValue(delta['audio'])) return 'the stream has audio'
    return null
  }

  edits(body: Buffer, text: string, spent: number): Edit[] {
    const fields = fieldsOf(body, ['messages', 'max_tokens', 'max_completion_tokens'])
    const message = { role: 'assistant', content: text }
    return [
      ...text === '' ? [] : appendToList(body, fields.get('messages'), message),
      ...reduceLimits(body, [fields.get('max_tokens'), fields.get('max_completion_tokens')], spent),
    ]
  }

  createTranslation(before: () => PriorUsage): EventTranslation {
    // If the client got no chunk of the first response, it needs the first chunk of this response, because that chunk has the role.
    const follows = this.#started
    return {
      translate: (chunk, text) => {
        // The client already has the end of the response: send only usage.
        if (this.finished && !isObject(chunk['usage'])) return []
        const whole: Json = { ...chunk, ...this.#identity }
        if (isObject(chunk['usage'])) whole['usage'] = totalUsage(chunk['usage'], before())
        const [choice] = objectsIn(chunk, 'choices')
        if (choice === undefined) return [whole]
        const delta = { ...objectIn(choice, 'delta') }
        if (follows) delete delta['role']
        if (typeof delta['content'] === 'string') delta['content'] = text(delta['content'])
        const isEmpty = Object.values(delta).every(value => !hasValue(value))
        if (follows && isEmpty && !hasValue(choice['finish_reason']) && !hasValue(chunk['usage'])) return []
        return [{ ...whole, choices: [{ ...choice, delta }] }]
      },
      render: chunk => `data: ${JSON.stringify(chunk)}\n\n`,
    }
  }
}

function totalUsage(usage: Json, { inputTokens, cachedInputTokens, outputTokens }: PriorUsage): Json {
  const sum = addPriorUsage(usage, {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: (inputTokens ?? 0) + (outputTokens ?? 0),
  })
  const { prompt_tokens_details: details } = usage
  if (isObject(details)) sum['prompt_tokens_details'] = addPriorUsage(details, { cached_tokens: cachedInputTokens })
  return sum
}

function identityOf({ id, created, model, object, system_fingerprint }: Json): Json {
  return { id, object, created, model, ...system_fingerprint !== undefined && { system_fingerprint } }
}
