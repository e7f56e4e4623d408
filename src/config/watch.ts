import { statSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Milliseconds for which a file has to stay as it is before its change is told: writers write in pieces. */
const SETTLE = 100
/** Milliseconds between two looks where nothing wakes the watch: not all file systems tell of changes. */
const LOOK_EVERY = 1_000

/**
 * Tells when files have changed, by whatever way: written in place, replaced by
 * rename as editors do, behind a symbolic link as in Kubernetes' config maps, gone
 * or back again. What is watched are the directories, since a file that was
 * replaced is another file.
 */
export class FileWatch {
  readonly #onChange: () => void
  /** By absolute path, as last told. */
  #known = new Map<string, string>()
  /** What the last look found, if it was something new. */
  #seen: string | null = null
  #watchers: FSWatcher[] = []
  #timer: NodeJS.Timeout | null = null
  #isSoon = false
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
    const known = this.#known
    this.#known = new Map(paths.map(path => [path, known.get(path) ?? stateOf(path)]))
    for (const watcher of this.#watchers) watcher.close()
    this.#watchers = [...new Set(paths.map(path => dirname(path)))].flatMap(
      directory => this.#listen(directory),
    )
    this.#lookIn(LOOK_EVERY)
  }

  /** Watches these too, until the next `watch`. */
  add(files: readonly string[]): void {
    this.watch([...this.#known.keys(), ...files])
  }

  close(): void {
    this.#closed = true
    for (const watcher of this.#watchers.splice(0)) watcher.close()
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #listen(directory: string): FSWatcher[] {
    try {
      const watcher = watch(directory, { persistent: false }, () => this.#lookIn(SETTLE))
      // A watch that breaks leaves the look every second.
      return [watcher.on('error', () => watcher.close())]
    } catch {
      // So does one that cannot be set up.
      return []
    }
  }

  /** Whoever writes to the directory all the time puts nothing off: a look that is due sooner stays. */
  #lookIn(ms: number): void {
    if (this.#timer !== null && this.#isSoon && ms === SETTLE) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#isSoon = ms === SETTLE
    this.#timer = setTimeout(this.#look, ms).unref()
  }

  readonly #look = (): void => {
    this.#timer = null
    const states = new Map(Array.from(this.#known.keys(), path => [path, stateOf(path)]))
    const found = JSON.stringify([...states])
    const isNew = found !== JSON.stringify([...this.#known])
    if (!isNew || found !== this.#seen) {
      this.#seen = isNew ? found : null
      this.#lookIn(isNew ? SETTLE : LOOK_EVERY)
      return
    }
    this.#known = states
    this.#seen = null
    this.#lookIn(LOOK_EVERY)
    this.#onChange()
  }
}

/** Says the same for as long as the file behind the path has not changed. */
function stateOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}
