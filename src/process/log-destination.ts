import { EventEmitter } from 'node:events'
import pino from 'pino'
import { escapeTerminalControl } from './terminal-control.ts'

/** Bytes that are written together, and ms after which fewer bytes are written. */
const BATCH_BYTES = 8192
const BATCH_DELAY = 100
/** Maximum bytes that wait for a slow reader. Above this, lines are dropped. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024
/** Maximum ms that the exit of the process waits for a reader. */
const FLUSH_TIMEOUT = 5_000
const SYNC_FLUSH_TIMEOUT = 1_000

/**
 * pino's destination (sonic-boom) for a file descriptor. Writes lines in order and in batches, without blocking. Retries when the reader is
 * busy, or the disk is full. If the reader closes, the destination ends without an error.
 *
 * Emits `dropped` with the number of dropped lines when the reader reads again.
 */
export class LogDestination extends EventEmitter<{ dropped: [lines: number] }> {
  readonly #destination
  #timer: NodeJS.Timeout | null = null
  #dropped = 0
  #isFailing = false
  #syncDeadline = Infinity

  /** @param fd descriptor, open for writing @param maxBuffered bytes */
  constructor(fd: number, maxBuffered = MAX_BUFFERED_BYTES) {
    super()
    this.#destination = pino.destination({
      fd, sync: false, contentMode: 'buffer', minLength: BATCH_BYTES, maxLength: maxBuffered,
      retryEAGAIN: () => performance.now() < this.#syncDeadline,
    })
    this.#destination.on('error', () => { this.#isFailing = true })
    this.#destination.on('drop', () => { this.#dropped++ })
    this.#destination.on('write', () => { this.#isFailing = false })
    this.#destination.on('drain', () => this.#reportDropped())
    // Limit the time: pino also flushes when the process exits, and sonic-boom would retry forever on a full disk.
    const flushSync = this.#destination.flushSync.bind(this.#destination)
    this.#destination.flushSync = () => {
      if (this.#isFailing) return
      this.#syncDeadline = performance.now() + SYNC_FLUSH_TIMEOUT
      try {
        flushSync()
      } catch {
        // The reader is still busy: the process ends without writing the rest.
      }
    }
  }

  /** @param line including the line feed */
  write(line: string): void {
    // Buffers take half as much CPU as strings. pino's type allows only strings.
    this.#destination.write(Buffer.from(escapeTerminalControl(line)) as unknown as string)
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#destination.flush()
    }, BATCH_DELAY)
  }

  /** Resolves when all lines are written, when they cannot be written, or after five seconds. */
  flush(): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, FLUSH_TIMEOUT)
      // If a write is running, the first flush ends with it. The second flush writes the rest.
      this.#destination.flush(() => this.#destination.flush(() => {
        clearTimeout(timer)
        resolve()
      }))
    })
  }

  /** Writes all lines before it returns, unless the disk is full, or the reader is busy for more than a second. */
  flushSync(): void {
    this.#destination.flushSync()
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return
    const lines = this.#dropped
    this.#dropped = 0
    this.emit('dropped', lines)
  }
}
