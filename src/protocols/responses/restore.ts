import type { CapsuleReader } from '../neutral/capsule.ts'
import { asList, asObject, asText, type JsonObject } from '../neutral/json.ts'
import { valueFor } from '../neutral/opaque.ts'
import { CapsuleRestorer } from '../neutral/restore.ts'
import { RESPONSES_TOOL_IDS } from './write-request.ts'

/**
 * Replaces capsules by the upstream's own encrypted reasoning, and removes reasoning of other providers; null = the body has no capsule.
 */
export function restoreResponses(body: JsonObject, provider: string, capsules: CapsuleReader): JsonObject | null {
  const restorer = new CapsuleRestorer(provider, RESPONSES_TOOL_IDS, capsules)
  let hasReasoning = false
  const input = asList(body['input']).flatMap(value => {
    const item = asObject(value)
    const encrypted = item?.['type'] === 'reasoning' ? asText(item['encrypted_content']) ?? '' : ''
    const capsule = capsules.open('opaque_value', encrypted, 'input[].encrypted_content')
    if (capsule !== null) {
      hasReasoning = true
      return capsule.thinking.flatMap(({ opaque }) => valueFor(opaque, provider) ?? [])
        // The summary belongs to all values of the item together, so only the first new item gets it.
        .map((own, at) => ({ type: 'reasoning', summary: at === 0 ? asList(item?.['summary']) : [], encrypted_content: own }))
    }
    return [item !== null && 'call_id' in item ? { ...item, call_id: restorer.toolId(item['call_id'], 'input[].call_id') } : value]
  })
  return hasReasoning || restorer.hasFound ? { ...body, input } : null
}
