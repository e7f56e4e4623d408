import { argumentsObject, withoutNulls, type JsonObject } from '../neutral/json.ts'
import type { ResponsePart } from '../neutral/response.ts'

export interface OpenItem {
  readonly outputIndex: number
  readonly id: string
  readonly part: ResponsePart
  /** Used only for calls, like `tool` and `callId`. */
  readonly callType: 'function_call' | 'custom_tool_call' | 'tool_search_call'
  /** The name and namespace of the tool. */
  readonly tool: JsonObject
  /** The id by which the client refers to the call. */
  readonly callId: string
  text: string
}

/** The prefix that OpenAI requires in an item's id. */
export function prefixOf(part: ResponsePart): string {
  switch (part.type) {
    case 'thinking': return 'rs_'
    case 'tool_call': return part.isFreeform ? 'ctc_' : 'fc_'
    default: return 'msg_'
  }
}

/** @param encrypted the sealed value of reasoning, which the client sends back; null = none */
export function itemOf(item: OpenItem, status: 'in_progress' | 'completed', encrypted: string | null): JsonObject {
  const { id, part, callType, tool, callId, text } = item
  const isDone = status === 'completed'
  switch (part.type) {
    case 'thinking':
      return { id, type: 'reasoning', summary: text === '' ? [] : [summaryOf(text)], ...withoutNulls({ encrypted_content: encrypted }) }
    case 'tool_call': return { id, type: callType, status, call_id: callId, ...tool, ...inputOf(item, isDone) }
    default: return { id, type: 'message', role: 'assistant', status, content: isDone ? [contentOf(item)] : [] }
  }
}

function inputOf({ callType, text }: OpenItem, isDone: boolean): JsonObject {
  switch (callType) {
    case 'custom_tool_call': return { input: text }
    case 'tool_search_call': return { arguments: isDone ? argumentsObject(text) : {} }
    default: return { arguments: isDone ? argumentsOf(text) : text }
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
