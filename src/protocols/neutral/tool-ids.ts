import { createHash } from 'node:crypto'

/** What a protocol takes as the id of a tool call. */
export interface ToolIdRule {
  readonly pattern: RegExp
  /** Characters. */
  readonly maxLength: number
  readonly prefix: string
}

/** Characters of a hash that tell the calls of a conversation apart. */
const HASH_LENGTH = 24

/**
 * An id that fits the rule: the id itself, or one that is made of it. The same id always gives the same, so that a
 * result and its call stay a pair.
 */
export function fittingToolId(id: string, { pattern, maxLength, prefix }: ToolIdRule): string {
  if (id !== '' && id.length <= maxLength && pattern.test(id)) return id
  const length = Math.min(HASH_LENGTH, maxLength - prefix.length)
  return prefix + createHash('sha256').update(id).digest('hex').slice(0, length)
}
