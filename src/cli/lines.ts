import { EventEmitter } from 'node:events'
import pino from 'pino'

/** Characters that are handed to the system together, or what there is after so many milliseconds. */
const AT_ONCE = 16_384
const AT_LATEST = 100
/** Bytes that wait for a reader who does not read; more is dropped, and told of when he reads again. */
const MOST = 16 * 1024 * 1024

/**
 * Log lines on their way to a file descriptor, without waiting for it. They leave
 * together: pino's destination can gather them too, but it measures all that it has
 * with each line, which copies it, 9 kB a line.
 *
 * Emits `dropped` with the number of lines that were lost because their reader did
 * not keep up, once he does again.
 */
export class Lines extends EventEmitter<{ dropped: [lines: number] }> {
  readonly #destination: ReturnType<typeof pino.destination>
  #text = ''
  #due = false
  #dropped = 0

  constructor(fd: number, most = MOST) {
    super()
    this.#destination = pino.destination({ dest: fd, sync: false, minLength: 1, maxLength: most })
    // A log that cannot be written, as on a full disk, is no reason to serve nobody.
    this.#destination.on('error', () => undefined)
    this.#destination.on('drop', (text: string) => {
      this.#dropped += text.split('\n').length - 1
    })
    this.#destination.on('drain', () => this.#tell())
  }

  /** @param line with its line feed */
  write(line: string): void {
    this.#text += line
    if (this.#text.length >= AT_ONCE) {
      this.#handOver()
    } else if (!this.#due) {
      this.#due = true
      setTimeout(() => {
        this.#due = false
        this.#handOver()
      }, AT_LATEST)
    }
  }

  /** Resolves when all that was written has been handed to the system, or cannot be. */
  flush(): Promise<void> {
    this.#handOver()
    // A reader that left has ended it.
    if (this.#isOver) return Promise.resolve()
    return new Promise(resolve => this.#destination.flush(() => resolve()))
  }

  /** The same at once, for the last words of a process that fails. */
  flushSync(): void {
    this.#handOver()
    if (!this.#isOver) this.#destination.flushSync()
  }

  #handOver(): void {
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#destination.write(text)
  }

  get #isOver(): boolean {
    return (this.#destination as { destroyed?: boolean }).destroyed === true
  }

  #tell(): void {
    if (this.#dropped === 0) return
    const lines = this.#dropped
    this.#dropped = 0
    this.emit('dropped', lines)
  }
}
