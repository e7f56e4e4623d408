import type { CapsuleReader } from '../neutral/capsule.ts'
import { asList, asObject, type JsonObject } from '../neutral/json.ts'
import { CapsuleRestorer } from '../neutral/restore.ts'
import { NO_SIGNATURE } from './write-content.ts'

const ANY_ID = { pattern: /./, maxLength: Infinity, prefix: 'call_' }
/** Google's APIs accept both spellings of the member. */
const NAMES = ['thoughtSignature', 'thought_signature']

/**
 * Replaces capsules by the upstream's own signatures, and removes signatures of other providers.
 * @returns null = the body has no capsule
 */
export function restoreGenerate(body: JsonObject, provider: string, capsules: CapsuleReader): JsonObject | null {
  const restorer = new CapsuleRestorer(provider, ANY_ID, capsules)
  const contents = asList(body['contents']).map(value => {
    const content = asObject(value)
    if (!Array.isArray(content?.['parts'])) return value
    return { ...content, parts: content['parts'].flatMap((part: unknown) => restorePart(part, restorer)) }
  })
  return restorer.hasFound ? { ...body, contents } : null
}

function restorePart(value: unknown, restorer: CapsuleRestorer): unknown[] {
  const part = asObject(value)
  const name = NAMES.find(each => part?.[each] !== undefined)
  if (part === null || name === undefined) return [value]
  const signature = restorer.opaque(part[name], `contents[].parts[].${name}`)
  if (signature !== null) return [{ ...part, [name]: signature }]
  if (part['functionCall'] !== undefined || part['function_call'] !== undefined) return [{ ...part, [name]: NO_SIGNATURE }]
  const { [name]: _, ...rest } = part
  return rest['text'] === '' ? [] : [rest]
}
