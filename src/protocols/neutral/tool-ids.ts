import { createHash } from 'node:crypto'

/** The ids of tool calls that a protocol accepts. */
export interface ToolIdRule {
  readonly pattern: RegExp
  /** Maximum characters of an id. */
  readonly maxLength: number
  readonly prefix: string
}

/** Characters of a hash. They are enough to distinguish the calls of a conversation. */
const HASH_LENGTH = 24

/**
 * The id itself if it fits the rule, or else a hash of the id. The same id always gives the same result, so a call and its result stay
 * paired.
 */
export function fittingToolId(id: string, { pattern, maxLength, prefix }: ToolIdRule): string {
  if (id !== '' && id.length <= maxLength && pattern.test(id)) return id
  const length = Math.min(HASH_LENGTH, maxLength - prefix.length)
  return prefix + createHash('sha256').update(id).digest('hex').slice(0, length)
}
