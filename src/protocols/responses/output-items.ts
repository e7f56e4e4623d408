import { argumentsObject, withoutNulls } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import type { ResponsePart } from '../neutral/response.ts'

/** An item of the response so far. */
export interface OpenItem {
  readonly outputIndex: number
  readonly id: string
  readonly part: ResponsePart
  /** For a call. */
  readonly callType: 'function_call' | 'custom_tool_call' | 'tool_search_call'
  /** For a call: the name of the tool, and its namespace. */
  readonly tool: JsonObject
  /** For a call: the id for the client. */
  readonly callId: string
  text: string
}

/** The id prefix of an item's type; an id with another prefix is refused. */
export function prefixOf(part: ResponsePart): string {
  switch (part.type) {
    case 'thinking':
      return 'rs_'
    case 'tool_call':
      return part.isFreeform ? 'ctc_' : 'fc_'
    default:
      return 'msg_'
  }
}

/**
 * An item for the client.
 *
 * @param status `in_progress` or `completed`
 * @param encrypted for reasoning: the value that its provider gets back
 */
export function itemOf(item: OpenItem, status: string, encrypted: string | null): JsonObject {
  const { id, part, callType, tool, callId, text } = item
  const isDone = status === 'completed'
  switch (part.type) {
    case 'thinking':
      return { id, type: 'reasoning', summary: text === '' ? [] : [summaryOf(text)], ...withoutNulls({ encrypted_content: encrypted }) }
    case 'tool_call':
      return { id, type: callType, status, call_id: callId, ...tool, ...inputOf(item, isDone) }
    default:
      return { id, type: 'message', role: 'assistant', status, content: isDone ? [contentOf(item)] : [] }
  }
}

function inputOf({ callType, text }: OpenItem, isDone: boolean): JsonObject {
  switch (callType) {
    case 'custom_tool_call':
      return { input: text }
    case 'tool_search_call':
      return { arguments: isDone ? argumentsObject(text) : {} }
    default:
      return { arguments: isDone ? argumentsOf(text) : text }
  }
}

export function contentOf({ part, text }: OpenItem): JsonObject {
  return part.type === 'refusal' ? { type: 'refusal', refusal: text } : { type: 'output_text', text, annotations: [], logprobs: [] }
}

export function summaryOf(text: string): JsonObject {
  return { type: 'summary_text', text }
}

export function argumentsOf(text: string): string {
  return text === '' ? '{}' : text
}
