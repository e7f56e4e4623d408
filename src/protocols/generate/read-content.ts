import type { BodyObject } from '../neutral/dialects/body-object.ts'
import type { CapsuleReader, CarriedThinking } from '../neutral/capsule.ts'
import type { JsonObject } from '../neutral/json.ts'
import { registeredType } from '../neutral/media-type.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import type { AudioPart, DocumentPart, ImagePart, MediaSource, Message, Part, ToolResultPart } from '../neutral/request.ts'

const PATH = 'contents[].parts[]'
const BASE = { path: PATH, cache: null }

interface OpenCall {
  readonly id: string
  readonly name: string
  hasResult: boolean
}

/** Calls in order. A call may be in several queues, so each queue skips calls that already have a result. */
class CallQueue {
  readonly #calls: OpenCall[] = []
  #next = 0

  add(call: OpenCall): void {
    this.#calls.push(call)
  }

  /** Takes the first call without a result from the queue. */
  take(): OpenCall | undefined {
    while (this.#calls[this.#next]?.hasResult === true) this.#next++
    const call = this.#calls[this.#next]
    if (call !== undefined) call.hasResult = true
    return call
  }
}

/** `function` is the older role of messages with results. */
const ROLES = ['user', 'model', 'function'] as const

/** Reads the contents of a conversation in order. A result without an id belongs to the first call of the same name without a result. */
export class ContentReader {
  readonly #all = new CallQueue()
  readonly #byId = new Map<string, CallQueue>()
  readonly #byName = new Map<string, CallQueue>()
  #calls = 0
  readonly #capsules: CapsuleReader

  constructor(capsules: CapsuleReader) {
    this.#capsules = capsules
  }

  instruction(body: BodyObject): Part[] {
    if (typeof body.value('systemInstruction') === 'string') {
      return [{ ...BASE, path: 'systemInstruction', type: 'text', text: body.text('systemInstruction') ?? '', opaque: null }]
    }
    const instruction = body.object('systemInstruction')
    // All parts are instructions, whatever the role of the content is.
    instruction?.ignore('role')
    return (instruction?.objects('parts') ?? []).flatMap(part => this.#part(part, []))
  }

  message(content: BodyObject): Message {
    const role = content.value('role') === '' ? 'user' : content.word('role', ROLES)
    const thinking: CarriedThinking[] = []
    const read = content.objects('parts').flatMap(part => this.#part(part, thinking))
    if (role !== 'model') return { role: 'user', name: null, parts: read }
    // Thinking from the call's signature comes first, because the model wrote the other parts after the thinking.
    return { role: 'assistant', name: null, parts: joinTexts([...thinking.flatMap(thinkingPart), ...read]) }
  }

  /** Reads a part, and adds the thinking from the part's signature to `thinking`. */
  #part(part: BodyObject, thinking: CarriedThinking[]): Part[] {
    const signature = part.text('thoughtSignature')
    const isThought = part.boolean('thought') === true
    // `partMetadata` is data of the client's application.
    part.ignore('partMetadata')
    const capsule = signature === null ? null : this.#capsules.open('opaque_value', signature, `${PATH}.thoughtSignature`)
    for (const carried of capsule?.thinking ?? []) thinking.push(carried)
    const opaque: OpaqueValue | null = capsule !== null ? capsule.opaque : signature === null ? null : { provider: null, value: signature }
    const call = part.object('functionCall')
    if (call !== null) return [this.#call(call, opaque)]
    const result = part.object('functionResponse')
    if (result !== null) return [this.#result(result)]
    const text = part.text('text')
    if (text !== null) {
      // A thought without a signature is dropped, because providers read only the signature.
      if (isThought) return opaque === null ? [] : [{ ...BASE, type: 'thinking', text, opaque }]
      const content: Part[] = text === '' ? [] : [{ ...BASE, type: 'text', text, opaque: null }]
      return [...content, ...opaque === null ? [] : [{ ...BASE, type: 'redacted_thinking', opaque } as const]]
    }
    const media = mediaPart(part)
    if (media !== null) return [media]
    part.dropWhole(part.names[0] ?? 'text')
    return []
  }

  #call(call: BodyObject, opaque: OpaqueValue | null): Part {
    const name = call.text('name') ?? ''
    const id = call.text('id') || `call_${name}_${this.#calls}`
    this.#calls++
    const open = { id, name, hasResult: false }
    this.#all.add(open)
    queueIn(this.#byId, id).add(open)
    queueIn(this.#byName, name).add(open)
    return { ...BASE, type: 'tool_call', id, name, arguments: JSON.stringify(call.json('args') ?? {}), isFreeform: false, opaque }
  }

  #result(result: BodyObject): ToolResultPart {
    const name = result.text('name') ?? ''
    const response = result.json('response') ?? {}
    const media = result.objects('parts').flatMap(part => mediaPart(part) ?? [])
    return {
      ...BASE, type: 'tool_result', callId: this.#callIdOf(result.text('id'), name), name, isFreeform: false,
      parts: [{ ...BASE, type: 'text', text: resultText(response), opaque: null }, ...media],
      isError: 'error' in response && !('output' in response),
    }
  }

  #callIdOf(id: string | null, name: string): string {
    const call = (id === null ? undefined : this.#byId.get(id)?.take()) ?? this.#byName.get(name)?.take() ?? this.#all.take()
    return call?.id ?? id ?? name
  }
}

function queueIn(queues: Map<string, CallQueue>, key: string): CallQueue {
  const queue = queues.get(key) ?? new CallQueue()
  queues.set(key, queue)
  return queue
}

/** Joins texts, because clients keep each chunk of a stream as a separate part. */
function joinTexts(parts: readonly Part[]): Part[] {
  const joined: Part[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    if (part.type === 'text' && last?.type === 'text') joined[joined.length - 1] = { ...last, text: last.text + part.text }
    else joined.push(part)
  }
  return joined
}

function thinkingPart({ text, opaque }: CarriedThinking): Part[] {
  if (text !== null) return [{ ...BASE, type: 'thinking', text, opaque }]
  return opaque === null ? [] : [{ ...BASE, type: 'redacted_thinking', opaque }]
}

/** A result as text: the value of its only member, or the JSON of the result. */
function resultText(response: JsonObject): string {
  const members = Object.keys(response)
  const [only] = members
  const value = only === 'output' || only === 'error' || only === 'result' ? response[only] : undefined
  return members.length === 1 && typeof value === 'string' ? value : JSON.stringify(members.length === 1 && value !== undefined ? value : response)
}

/** Matches files that were uploaded to Google, or that are in Google's storage. */
const GOOGLES_FILE = /^gs:|^https:\/\/generativelanguage\.googleapis\.com\/|^files\//

function mediaPart(part: BodyObject): ImagePart | AudioPart | DocumentPart | null {
  const inline = part.object('inlineData')
  const file = part.object('fileData')
  const given = inline ?? file
  if (given === null) return null
  const written = given.text('mimeType')
  const mediaType = written && registeredType(written)
  const url = file?.text('fileUri') ?? ''
  const source: MediaSource = inline !== null
    ? { kind: 'base64', mediaType: mediaType ?? 'application/octet-stream', data: standardBase64(inline.text('data') ?? '') }
    : GOOGLES_FILE.test(url) ? { kind: 'file', id: url, mediaType } : { kind: 'url', url, mediaType }
  const name = given.text('displayName')
  if (mediaType?.startsWith('image/')) return { ...BASE, type: 'image', source, detail: null }
  if (mediaType?.startsWith('audio/')) return { ...BASE, type: 'audio', source }
  return { ...BASE, type: 'document', source, name }
}

/** Converts base64 to the standard alphabet. Google also accepts the URL-safe alphabet. */
function standardBase64(data: string): string {
  return /[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data
}
