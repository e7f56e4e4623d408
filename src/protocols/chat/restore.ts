import type { CapsuleReader } from '../neutral/capsule.ts'
import { asList, asObject, type JsonObject } from '../neutral/json.ts'
import { CapsuleRestorer } from '../neutral/restore.ts'
import { CHAT_TOOL_IDS } from './write-request.ts'

/** Replaces each capsule in the ids of tool calls by the upstream's own id. @returns null = the body has no capsule */
export function restoreChat(body: JsonObject, provider: string, capsules: CapsuleReader): JsonObject | null {
  const restorer = new CapsuleRestorer(provider, CHAT_TOOL_IDS, capsules)
  const messages = asList(body['messages']).map(value => {
    const message = asObject(value)
    if (message === null) return value
    if (Array.isArray(message['tool_calls'])) {
      return { ...message, tool_calls: message['tool_calls'].map((call: unknown) => withId(call, restorer)) }
    }
    return 'tool_call_id' in message ? { ...message, tool_call_id: restorer.toolId(message['tool_call_id'], 'messages[].tool_call_id') } : message
  })
  return restorer.hasFound ? { ...body, messages } : null
}

function withId(value: unknown, restorer: CapsuleRestorer): unknown {
  const call = asObject(value)
  return call === null ? value : { ...call, id: restorer.toolId(call['id'], 'messages[].tool_calls[].id') }
}
