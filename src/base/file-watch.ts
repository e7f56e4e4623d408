import { statSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Milliseconds for which a file has to stay as it is before its change is reported: writers write in pieces. */
const SETTLE_DELAY = 100
/** Milliseconds between two looks where nothing wakes the watch: not all file systems report changes. */
const POLL_INTERVAL = 1_000

/**
 * Reports that files have changed: written in place, replaced by rename as editors do, behind a symbolic link as in
 * Kubernetes' config maps, removed or created again. It watches the directories, because a file that was replaced is
 * another file.
 */
export class FileWatch {
  readonly #onChange: () => void
  /** By absolute path, as last reported. */
  #reportedStates = new Map<string, string>()
  /** What the last look found, if it was something new. */
  #pendingStates: string | null = null
  #watchers: FSWatcher[] = []
  #timer: NodeJS.Timeout | null = null
  #isSettling = false
  #closed = false

  /** @param files what they are at this moment is no change */
  constructor(files: readonly string[], onChange: () => void) {
    this.#onChange = onChange
    this.watch(files)
  }

  /** Watches these files from now on. Those that were watched before stay as they were known. */
  watch(files: readonly string[]): void {
    if (this.#closed) return
    const paths = [...new Set(files.map(file => resolve(file)))]
    const known = this.#reportedStates
    this.#reportedStates = new Map(paths.map(path => [path, known.get(path) ?? fileState(path)]))
    for (const watcher of this.#watchers) watcher.close()
    this.#watchers = [...new Set(paths.map(path => dirname(path)))].flatMap(
      directory => this.#watchDirectory(directory),
    )
    this.#schedulePoll(POLL_INTERVAL)
  }

  /** Watches these too, until the next `watch`. */
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
      // A watch that breaks leaves the look every second.
      return [watcher.on('error', () => watcher.close())]
    } catch {
      // So does one that cannot be set up.
      return []
    }
  }

  /** Constant writes to the directory delay nothing: a check that is due sooner stays. */
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

/** Says the same for as long as the file behind the path has not changed. */
function fileState(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}
