import type { Problem } from './problem.ts'

export interface ReloadEvent {
  /** ms since 1970 */
  readonly at: number
  readonly applied: boolean
  /** Who requested the reload: `command line: root`, `SIGHUP`, `--watch`. */
  readonly by: string
  /** The configuration text that was active before the reload. */
  readonly before: string
  /** The new text of the file; null = unreadable. */
  readonly text: string | null
  /** What changed, such as `upstreams.openai: changed`. Empty if the reload was rejected, or if nothing changed. */
  readonly changes: readonly string[]
  /** Why the reload was rejected. For an applied reload, empty. */
  readonly problems: readonly Problem[]
}
