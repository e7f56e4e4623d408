import { unseal } from '../neutral/capsule.ts'
import { asList, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import { valueFor } from '../neutral/opaque.ts'
import { CapsuleRestorer } from '../neutral/restore.ts'
import { RESPONSES_TOOL_IDS } from './write-request.ts'

/**
 * Gives a responses upstream its own encrypted reasoning back, and none of another's.
 *
 * @returns null = there is nothing to restore
 */
export function restoreResponses(body: JsonObject, provider: string): JsonObject | null {
  const restorer = new CapsuleRestorer(provider, RESPONSES_TOOL_IDS)
  let hasReasoning = false
  const input = asList(body['input']).flatMap(value => {
    const item = asObject(value)
    const capsule = item?.['type'] === 'reasoning' ? unseal(asText(item['encrypted_content']) ?? '') : null
    if (capsule !== null) {
      hasReasoning = true
      return capsule.thinking.flatMap(({ opaque }) => valueFor(opaque, provider) ?? [])
        .map(encrypted => ({ type: 'reasoning', summary: asList(item?.['summary']), encrypted_content: encrypted }))
    }
    return [item !== null && 'call_id' in item ? { ...item, call_id: restorer.toolId(item['call_id']) } : value]
  })
  return hasReasoning || restorer.hasFound ? { ...body, input } : null
}
