import type { Problem } from './problem.ts'

export interface ReloadEvent {
  /** ms since 1970 */
  readonly at: number
  readonly applied: boolean
  /** `command line: root`, `SIGHUP`, `--watch`. */
  readonly by: string
  /** The text that was active before. */
  readonly before: string
  /** The text of the file; null = unreadable. */
  readonly text: string | null
  /** `upstreams.openai: changed`; empty if it was rejected or nothing changed. */
  readonly changes: readonly string[]
  /** Why it was rejected; empty = applied. */
  readonly problems: readonly Problem[]
}
