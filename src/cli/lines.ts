import { EventEmitter } from 'node:events'
import { write, writeSync } from 'node:fs'

/** Characters that are handed to the system together, or what there is after so many milliseconds. */
const BATCH_LENGTH = 16_384
const BATCH_DELAY = 100
/** Bytes that wait for a reader who does not read; more is dropped, and told of when he reads again. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024
/** Milliseconds until a reader who was not ready is tried again. */
const RETRY_DELAY = 50
/** Milliseconds that whoever flushes waits for a reader, and that last words keep the process waiting. */
const FLUSH_TIMEOUT = 5_000
const SYNC_FLUSH_TIMEOUT = 1_000
const LF = 0x0a

/**
 * Log lines on their way to a file descriptor, in order, without waiting for it.
 * They leave together. pino's own destination can gather them too; it copies all
 * that it has with each line, and at the end waits for ever for what cannot be written.
 *
 * Emits `dropped` with the number of lines that were lost, because nobody took
 * them in time or the disk was full, once others get through again.
 */
export class Lines extends EventEmitter<{ dropped: [lines: number] }> {
  readonly #fd: number
  readonly #maxBuffered: number
  /** Lines that are gathered. */
  #batch = ''
  #isBatchScheduled = false
  /** What is to be written, the first of it at this moment if `#writing`. */
  readonly #queue: Buffer[] = []
  #writing = false
  /** The reader was not ready. */
  #isPaused = false
  #dropped = 0
  /** The reader has left. */
  #isReaderClosed = false
  #flushed: PromiseWithResolvers<void> | null = null

  constructor(fd: number, most = MAX_BUFFERED_BYTES) {
    super()
    this.#fd = fd
    this.#maxBuffered = most
  }

  /** @param line with its line feed */
  write(line: string): void {
    if (this.#isReaderClosed) return
    this.#batch += line
    if (this.#batch.length >= BATCH_LENGTH) {
      this.#enqueueBatch()
    } else if (!this.#isBatchScheduled) {
      this.#isBatchScheduled = true
      setTimeout(() => {
        this.#isBatchScheduled = false
        this.#enqueueBatch()
      }, BATCH_DELAY)
    }
  }

  /** Resolves when all that was written has been handed to the system, cannot be, or is not taken in time. */
  async flush(): Promise<void> {
    this.#enqueueBatch()
    if (this.#queue.length === 0) return
    this.#flushed ??= Promise.withResolvers()
    const { promise, resolve } = this.#flushed
    const late = setTimeout(() => {
      this.#flushed = null
      resolve()
    }, FLUSH_TIMEOUT)
    await promise
    clearTimeout(late)
  }

  /** The same at once, for the last words of a process that fails; what is being written may come later. */
  flushSync(): void {
    const first = this.#writing ? 1 : 0
    const rest = Buffer.concat([...this.#queue.slice(first), Buffer.from(this.#batch)])
    this.#batch = ''
    this.#queue.length = first
    const until = performance.now() + SYNC_FLUSH_TIMEOUT
    for (let at = 0; at < rest.length;) {
      try {
        at += writeSync(this.#fd, rest, at)
      } catch (error) {
        if (!isBusy(error) || performance.now() > until) return
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
      }
    }
  }

  #enqueueBatch(): void {
    if (this.#batch === '') return
    const bytes = Buffer.from(this.#batch)
    this.#batch = ''
    const waiting = this.#queue.reduce((sum, { length }) => sum + length, 0)
    if (waiting + bytes.length > this.#maxBuffered) {
      this.#countDropped(bytes)
      return
    }
    this.#queue.push(bytes)
    this.#writeNext()
  }

  #writeNext(): void {
    if (this.#writing || this.#isPaused) return
    const [first] = this.#queue
    if (first === undefined) {
      this.#flushed?.resolve()
      this.#flushed = null
      return
    }
    this.#writing = true
    write(this.#fd, first, (error, written) => {
      this.#writing = false
      if (isBusy(error)) {
        this.#pause()
        return
      }
      this.#queue.shift()
      if (error) this.#onWriteError(error, first)
      else this.#onWritten(first, written)
      this.#writeNext()
    })
  }

  #pause(): void {
    this.#isPaused = true
    setTimeout(() => {
      this.#isPaused = false
      this.#writeNext()
    }, RETRY_DELAY)
  }

  #onWritten(bytes: Buffer, written: number): void {
    if (written < bytes.length) {
      this.#queue.unshift(bytes.subarray(written))
    } else if (this.#dropped > 0) {
      const lines = this.#dropped
      this.#dropped = 0
      this.emit('dropped', lines)
    }
  }

  #onWriteError(error: NodeJS.ErrnoException, bytes: Buffer): void {
    // A log that cannot be written, as on a full disk, is no reason to serve nobody.
    this.#countDropped(bytes)
    if (error.code !== 'EPIPE') return
    this.#isReaderClosed = true
    this.#batch = ''
    this.#queue.length = 0
  }

  #countDropped(bytes: Buffer): void {
    for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) this.#dropped++
  }
}

function isBusy(error: unknown): boolean {
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  return code === 'EAGAIN' || code === 'EBUSY'
}
