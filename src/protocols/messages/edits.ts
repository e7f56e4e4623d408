import type { RequestEdits } from '../endpoint/protocol.ts'
import { addToText, elementsOf, joined, memberIn, membersNamed, type Range } from '../request/instructions.ts'
import type { Edit } from '../json/splice.ts'

const textBlock = (text: string) => ({ type: 'text', text })
const MARK = '"cache_control":{"type":"ephemeral"}'
/** Blocks that can have a mark. */
const MARKED_BLOCK = /^"(?:text|image|document|tool_result)"$/

export const MESSAGES_EDITS: RequestEdits = {
  members: {
    temperature: 'temperature', top_p: 'top_p', top_k: 'top_k', max_output_tokens: 'max_tokens', reasoning_effort: 'output_config.effort',
    stop: 'stop_sequences', metadata: 'metadata', service_tier: 'service_tier',
  },
  stopIsList: true,
  addInstructions: (body, texts) => {
    const named = membersNamed(body, 'system')
    if (named === null) return []
    const edits = named.fields.map(field => addToText(body, field, texts, textBlock)
      ?? [{ start: field.start, end: field.end, bytes: Buffer.from(JSON.stringify(joined(texts))) }])
    return named.fields.length === 0 ? [named.add(joined(texts))] : edits.flat()
  },
  markCache,
}

/** Marks the last tool, the end of the system prompt, and the last two user messages, unless the client has marked something. */
function markCache(body: Buffer): Edit[] {
  if (body.includes('cache_control')) return []
  const tools = membersNamed(body, 'tools')?.fields.at(-1)
  const lastTool = tools && lastOf(elementsOf(body, tools))
  const system = membersNamed(body, 'system')?.fields.at(-1)
  const messages = membersNamed(body, 'messages')?.fields.at(-1)
  let users: Range[] = []
  for (const message of messages === undefined ? [] : elementsOf(body, messages)) {
    if (textAt(body, memberIn(body, message, 'role')) === '"user"') users = [...users.slice(-1), message]
  }
  const contents = users.map(message => memberIn(body, message, 'content'))
  return [
    ...lastTool && body[lastTool.start] === 0x7b ? [markIn(lastTool.start, body)] : [],
    ...[system ?? null, ...contents].flatMap(content => (content === null ? [] : markText(body, content))),
  ]
}

/** Marks the end of a text, or the last block of a list. The vendor refuses a mark at an empty text. */
function markText(body: Buffer, { start, end }: Range): Edit[] {
  if (body[start] === 0x22) {
    if (end - start <= 2) return []
    return [
      { start, end: start, bytes: Buffer.from('[{"type":"text","text":') },
      { start: end, end, bytes: Buffer.from(`,${MARK}}]`) },
    ]
  }
  const block = lastOf(elementsOf(body, { start, end }))
  if (block === undefined || !MARKED_BLOCK.test(textAt(body, memberIn(body, block, 'type')))) return []
  return textAt(body, memberIn(body, block, 'text')) === '""' ? [] : [markIn(block.start, body)]
}

function lastOf(elements: Iterable<Range>): Range | undefined {
  let last: Range | undefined
  for (const element of elements) last = element
  return last
}

/** @param start of an object */
function markIn(start: number, body: Buffer): Edit {
  const open = start + 1
  const isEmpty = /^\s*\}/.test(body.toString('latin1', open, open + 20))
  return { start: open, end: open, bytes: Buffer.from(isEmpty ? MARK : `${MARK},`) }
}

function textAt(body: Buffer, range: Range | null): string {
  return range === null ? '' : body.toString('utf8', range.start, Math.min(range.end, range.start + 40))
}
