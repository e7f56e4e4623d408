import type { Problem } from './problem.ts'

/** One reload. */
export interface ReloadEvent {
  /** ms since 1970 */
  readonly at: number
  readonly applied: boolean
  /** Who or what asked for it: `command line: root`, `SIGHUP`, `--watch`. */
  readonly by: string
  /** The text that was active before. */
  readonly before: string
  /** The text of the file; null where it cannot be read. */
  readonly text: string | null
  /** `upstreams.openai: changed`; empty where it was rejected, or nothing changed. */
  readonly changes: readonly string[]
  /** Why it was rejected; empty where it was not. */
  readonly problems: readonly Problem[]
}
