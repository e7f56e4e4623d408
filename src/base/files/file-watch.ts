import { statSync, watch, type FSWatcher } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** ms for which a file must stay unchanged before its change is reported, because writers write in several pieces. */
const SETTLE_DELAY = 100
/** ms between two checks, because not all file systems report changes. */
const POLL_INTERVAL = 1_000

/**
 * Reports files that are written, replaced, removed or created. A file behind a symbolic link may be replaced too. Watches the directories
 * of the files.
 */
export class FileWatch {
  readonly #onChange: () => void
  /** States of the files at the last report. Keys are absolute paths. */
  #reportedStates = new Map<string, string>()
  /** The new state that the last check found; null = the last check found no change. */
  #pendingStates: string | null = null
  #watchers: FSWatcher[] = []
  #timer: NodeJS.Timeout | null = null
  #isSettling = false
  #closed = false

  /** @param files the files to watch; their current state counts as unchanged */
  constructor(files: readonly string[], onChange: () => void) {
    this.#onChange = onChange
    this.watch(files)
  }

  /** Watches only these files after the call. States of files that were watched before are kept. */
  watch(files: readonly string[]): void {
    if (this.#closed) return
    const paths = [...new Set(files.map(file => resolve(file)))]
    const known = this.#reportedStates
    this.#reportedStates = new Map(paths.map(path => [path, known.get(path) ?? fileState(path)]))
    for (const watcher of this.#watchers) watcher.close()
    this.#watchers = [...new Set(paths.map(path => dirname(path)))].flatMap(directory => this.#watchDirectory(directory))
    this.#schedulePoll(POLL_INTERVAL)
  }

  add(files: readonly string[]): void {
    this.watch([...this.#reportedStates.keys(), ...files])
  }

  close(): void {
    this.#closed = true
    for (const watcher of this.#watchers.splice(0)) watcher.close()
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #watchDirectory(directory: string): FSWatcher[] {
    try {
      const watcher = watch(directory, { persistent: false }, () => this.#schedulePoll(SETTLE_DELAY))
      // If the watch fails, only the regular check finds changes.
      return [watcher.on('error', () => watcher.close())]
    } catch {
      // Without a watch, only the regular check finds changes.
      return []
    }
  }

  /** Schedules the next check. A check that is due earlier stays, so that constant writes to the directory do not delay it. */
  #schedulePoll(ms: number): void {
    if (this.#timer !== null && this.#isSettling && ms === SETTLE_DELAY) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#isSettling = ms === SETTLE_DELAY
    this.#timer = setTimeout(this.#poll, ms).unref()
  }

  readonly #poll = (): void => {
    this.#timer = null
    const states = new Map(Array.from(this.#reportedStates.keys(), path => [path, fileState(path)]))
    const found = JSON.stringify([...states])
    const isNew = found !== JSON.stringify([...this.#reportedStates])
    if (!isNew || found !== this.#pendingStates) {
      this.#pendingStates = isNew ? found : null
      this.#schedulePoll(isNew ? SETTLE_DELAY : POLL_INTERVAL)
      return
    }
    this.#reportedStates = states
    this.#pendingStates = null
    this.#schedulePoll(POLL_INTERVAL)
    this.#onChange()
  }
}

/** A text that differs after any change of the file. */
function fileState(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}
