import type { CapsuleReader } from '../neutral/capsule.ts'
import { asList, asObject, type JsonObject } from '../neutral/json.ts'
import { CapsuleRestorer } from '../neutral/restore.ts'
import { MESSAGES_TOOL_IDS } from './write-request.ts'

const CONTENT = 'messages[].content[]'

/** Replaces capsules by the upstream's own thinking, and removes thinking of other providers. @returns null = the body has no capsule */
export function restoreMessages(body: JsonObject, provider: string, capsules: CapsuleReader): JsonObject | null {
  const restorer = new CapsuleRestorer(provider, MESSAGES_TOOL_IDS, capsules)
  const messages = asList(body['messages']).flatMap(value => {
    const message = asObject(value)
    if (message === null || !Array.isArray(message['content'])) return [value]
    const content = message['content'].flatMap((block: unknown) => restoreBlock(block, restorer))
    return content.length === 0 && message['content'].length > 0 ? [] : [{ ...message, content }]
  })
  if (!restorer.hasFound) return null
  const restored = { ...body, messages }
  // Turns thinking off if a turn with a tool call does not begin with thinking: the upstream refuses such a turn while thinking is on.
  return asObject(body['thinking'])?.['type'] === 'enabled' && lacksThinking(messages) ? { ...restored, thinking: undefined } : restored
}

function restoreBlock(value: unknown, restorer: CapsuleRestorer): unknown[] {
  const block = asObject(value)
  switch (block?.['type']) {
    case 'thinking': {
      const signature = restorer.opaque(block['signature'], `${CONTENT}.signature`)
      return signature === null ? [] : [{ ...block, signature }]
    }
    case 'redacted_thinking': {
      const data = restorer.opaque(block['data'], `${CONTENT}.data`)
      return data === null ? [] : [{ ...block, data }]
    }
    case 'tool_use': return [{ ...block, id: restorer.toolId(block['id'], `${CONTENT}.id`) }]
    case 'tool_result': return [{ ...block, tool_use_id: restorer.toolId(block['tool_use_id'], `${CONTENT}.tool_use_id`) }]
    default: return [value]
  }
}

/** Tells whether the model's unfinished turn calls a tool and does not begin with thinking. */
function lacksThinking(messages: readonly unknown[]): boolean {
  const blocksOf = (message: unknown): unknown[] => asList(asObject(message)?.['content']).map(block => asObject(block)?.['type'])
  const asks = (message: unknown): boolean => asObject(message)?.['role'] === 'user' && !blocksOf(message).includes('tool_result')
  const turnStart = messages.findLastIndex(asks)
  const first = messages.slice(turnStart + 1).find(message => asObject(message)?.['role'] === 'assistant')
  const types = blocksOf(first)
  return types.includes('tool_use') && types[0] !== 'thinking' && types[0] !== 'redacted_thinking'
}
