import type { Problem } from './problem.ts'

/** One reload. */
export interface ReloadEvent {
  /** ms since 1970 */
  readonly at: number
  readonly applied: boolean
  /** Who or what requested it: `command line: root`, `SIGHUP`, `--watch`. */
  readonly by: string
  /** The previously active text. */
  readonly before: string
  /** The text of the file; null = unreadable. */
  readonly text: string | null
  /** `upstreams.openai: changed`; empty if it was rejected or nothing changed. */
  readonly changes: readonly string[]
  /** Why it was rejected; empty = applied. */
  readonly problems: readonly Problem[]
}
