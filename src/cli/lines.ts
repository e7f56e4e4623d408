import { EventEmitter } from 'node:events'
import { write, writeSync } from 'node:fs'

/** Characters that are handed to the system together, or what there is after so many milliseconds. */
const AT_ONCE = 16_384
const AT_LATEST = 100
/** Bytes that wait for a reader who does not read; more is dropped, and told of when he reads again. */
const MOST = 16 * 1024 * 1024
/** Milliseconds until a reader who was not ready is tried again. */
const AGAIN = 50
/** Milliseconds that whoever flushes waits for a reader, and that last words keep the process waiting. */
const PATIENCE = 5_000
const LAST_PATIENCE = 1_000
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
  readonly #most: number
  /** Lines that are gathered. */
  #text = ''
  #due = false
  /** What is to be written, the first of it at this moment if `#writing`. */
  readonly #waiting: Buffer[] = []
  #writing = false
  /** The reader was not ready. */
  #pausing = false
  #dropped = 0
  /** The reader has left. */
  #over = false
  #flushed: PromiseWithResolvers<void> | null = null

  constructor(fd: number, most = MOST) {
    super()
    this.#fd = fd
    this.#most = most
  }

  /** @param line with its line feed */
  write(line: string): void {
    if (this.#over) return
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

  /** Resolves when all that was written has been handed to the system, cannot be, or is not taken in time. */
  async flush(): Promise<void> {
    this.#handOver()
    if (this.#waiting.length === 0) return
    this.#flushed ??= Promise.withResolvers()
    const { promise, resolve } = this.#flushed
    const late = setTimeout(() => {
      this.#flushed = null
      resolve()
    }, PATIENCE)
    await promise
    clearTimeout(late)
  }

  /** The same at once, for the last words of a process that fails; what is being written may come later. */
  flushSync(): void {
    const first = this.#writing ? 1 : 0
    const rest = Buffer.concat([...this.#waiting.slice(first), Buffer.from(this.#text)])
    this.#text = ''
    this.#waiting.length = first
    const until = performance.now() + LAST_PATIENCE
    for (let at = 0; at < rest.length;) {
      try {
        at += writeSync(this.#fd, rest, at)
      } catch (error) {
        if (!isBusy(error) || performance.now() > until) return
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
      }
    }
  }

  #handOver(): void {
    if (this.#text === '') return
    const bytes = Buffer.from(this.#text)
    this.#text = ''
    const waiting = this.#waiting.reduce((sum, { length }) => sum + length, 0)
    if (waiting + bytes.length > this.#most) {
      this.#lose(bytes)
      return
    }
    this.#waiting.push(bytes)
    this.#next()
  }

  #next(): void {
    if (this.#writing || this.#pausing) return
    const [first] = this.#waiting
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
      this.#waiting.shift()
      if (error) this.#fail(error, first)
      else this.#took(first, written)
      this.#next()
    })
  }

  #pause(): void {
    this.#pausing = true
    setTimeout(() => {
      this.#pausing = false
      this.#next()
    }, AGAIN)
  }

  #took(bytes: Buffer, written: number): void {
    if (written < bytes.length) {
      this.#waiting.unshift(bytes.subarray(written))
    } else if (this.#dropped > 0) {
      const lines = this.#dropped
      this.#dropped = 0
      this.emit('dropped', lines)
    }
  }

  #fail(error: NodeJS.ErrnoException, bytes: Buffer): void {
    // A log that cannot be written, as on a full disk, is no reason to serve nobody.
    this.#lose(bytes)
    if (error.code !== 'EPIPE') return
    this.#over = true
    this.#text = ''
    this.#waiting.length = 0
  }

  #lose(bytes: Buffer): void {
    for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) this.#dropped++
  }
}

function isBusy(error: unknown): boolean {
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  return code === 'EAGAIN' || code === 'EBUSY'
}
