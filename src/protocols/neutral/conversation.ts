import { pairResults } from './pair-results.ts'
import type { JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'
import type { Message, Part } from './request.ts'

/** @returns `leading`: the system and developer messages at the beginning; `rest`: all other messages */
export function splitInstructions(messages: readonly Message[]): { readonly leading: readonly Message[], readonly rest: readonly Message[] } {
  const first = messages.findIndex(message => !isInstruction(message))
  const end = first === -1 ? messages.length : first
  return { leading: messages.slice(0, end), rest: messages.slice(end) }
}

/**
 * Separates the instructions, for protocols with a field for them. Such protocols require a message: if all messages are instructions, the
 * last becomes a user message.
 */
export function conversationOf(all: readonly Message[]): { readonly instructions: readonly Part[], readonly messages: readonly Message[] } {
  const { leading, rest } = splitInstructions(all)
  if (rest.length > 0) return { instructions: leading.flatMap(({ parts }) => parts), messages: rest }
  return { instructions: all.slice(0, -1).flatMap(({ parts }) => parts), messages: all.slice(-1).map(message => ({ ...message, role: 'user' })) }
}

/**
 * Converts the messages for protocols that have only user and assistant messages. Later instructions become user text between `<system>`
 * tags. Consecutive messages of one role are joined, with tool results first. Blank text is left out, because such protocols refuse it.
 */
export function alternatingTurns(messages: readonly Message[]): Message[] {
  const turns: { role: 'user' | 'assistant', parts: Part[] }[] = []
  for (const message of pairResults(messages)) {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const said = message.parts.filter(part => !isBlank(part))
    if (said.length === 0) continue
    const parts = isInstruction(message) ? said.map(markInstruction) : said
    const last = turns.at(-1)
    if (last?.role === role) for (const part of parts) last.parts.push(part)
    else turns.push({ role, parts: [...parts] })
  }
  if (turns[0]?.role === 'assistant') turns.unshift({ role: 'user', parts: [textPart(BEGINNING)] })
  return turns.map(({ role, parts }) => ({ role, name: null, parts: role === 'user' ? resultsFirst(parts) : parts }))
}

/**
 * Converts later instructions to user text, joined with adjacent user messages, for targets that accept instructions only at the beginning.
 */
export function foldInstructions(messages: readonly Message[]): readonly Message[] {
  const { leading, rest } = splitInstructions(messages)
  if (rest.length === 0) return messages.map((message, at) => (at === messages.length - 1 ? { ...message, role: 'user' } : message))
  if (!rest.some(isInstruction)) return messages
  const folded: (Draft & { isFolded: boolean })[] = []
  for (const message of rest) {
    const isFolded = isInstruction(message)
    const own: Message = isFolded ? { role: 'user', parts: message.parts.map(markInstruction), name: null } : message
    const last = folded.at(-1)
    const joins = last !== undefined && (isFolded || last.isFolded) && own.role === 'user' && last.role === 'user'
    if (joins) join(last, own)
    else folded.push({ ...draftOf(own), isFolded })
    if (joins && isFolded) last.isFolded = true
  }
  return [...leading, ...folded.map(({ role, name, parts }) => ({ role, name, parts }))]
}

/**
 * Removes thinking at the end of a turn, which an interrupted response leaves. Targets refuse such thinking: "The final block in an
 * assistant message cannot be `thinking`" (Anthropic). The last message stays unchanged, because the response may continue it.
 */
export function withoutIdleThinking(messages: readonly Message[], report: TranslationReport, keepsSigned: boolean): readonly Message[] {
  const isThinking = (part: Part | undefined): boolean =>
    (part?.type === 'thinking' || part?.type === 'redacted_thinking') && !(keepsSigned && part.opaque !== null)
  const isIdle = (message: Message, at: number): boolean =>
    message.role === 'assistant' && isThinking(message.parts.at(-1)) && at < messages.length - 1 && messages[at + 1]?.role !== 'assistant'
  if (!messages.some(isIdle)) return messages
  const kept: Draft[] = []
  /** true if a whole turn was left out: then the user messages around the turn are joined. */
  let joins = false
  for (const [at, message] of messages.entries()) {
    const last = kept.at(-1)
    if (!isIdle(message, at)) {
      const isOne = joins && message.role === 'user' && last?.role === 'user' && last.name === message.name
      if (isOne) join(last, message)
      else kept.push(draftOf(message))
      joins = false
      continue
    }
    const end = message.parts.findLastIndex(part => !isThinking(part)) + 1
    for (const { path, type } of message.parts.slice(end)) report.drop(`${path}.${type}`)
    if (end > 0) kept.push(draftOf({ ...message, parts: message.parts.slice(0, end) }))
    else joins = true
  }
  return kept
}

/** A message to which later messages can be joined. */
interface Draft {
  readonly role: Message['role']
  name: Message['name']
  readonly parts: Part[]
}

function draftOf({ role, name, parts }: Message): Draft {
  return { role, name, parts: [...parts] }
}

function join(draft: Draft, { name, parts }: Message): void {
  for (const part of parts) draft.parts.push(part)
  draft.name ??= name
}

/** The instruction that replaces a schema, for protocols without a field for a schema. */
export function schemaInstruction(schema: JsonObject): Message {
  const text = `Respond with one JSON object and nothing else. It fits this JSON Schema: ${JSON.stringify(schema)}`
  return { role: 'system', name: null, parts: [textPart(text, 'outputFormat')] }
}

/** User message before a conversation that begins with the assistant: the protocols require that the user begins. */
const BEGINNING = '(The conversation begins here.)'

function textPart(text: string, path = ''): Part {
  return { type: 'text', path, cache: null, text, opaque: null }
}

function isInstruction({ role }: Message): boolean {
  return role === 'system' || role === 'developer'
}

function isBlank(part: Part): boolean {
  return (part.type === 'text' || part.type === 'refusal') && part.text.trim() === ''
}

function markInstruction(part: Part): Part {
  return part.type === 'text' ? { ...part, text: `<system>\n${part.text}\n</system>` } : part
}

function resultsFirst(parts: readonly Part[]): Part[] {
  const isResult = ({ type }: Part): boolean => type === 'tool_result'
  return [...parts.filter(isResult), ...parts.filter(part => !isResult(part))]
}
