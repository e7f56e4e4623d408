import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/message-of.ts'
import { threadUrl } from '../base/thread-url.ts'
import type { FromArchive, ToArchive } from './messages.ts'
import type { Packed, Transcript } from './transcript.ts'

export interface ArchiveOptions {
  readonly file: string
  readonly clock: Pick<Clock, 'monotonic'>
  /** Bytes that may wait for the thread; more are not kept. 64 MiB unless told. */
  readonly maxWaiting?: number
  /** Something could not be kept; told once in a while. */
  readonly onTrouble: (trouble: { readonly message: string; readonly lost: number }) => void
}

const MAX_WAITING = 64 * 1024 * 1024
/** Milliseconds between two reports of trouble. */
const REMINDER = 60_000
/** Milliseconds until another thread is started where one could not begin: each takes a tenth of a second. */
const REST = 5_000
/** What a transcript takes beside its bodies, roughly. */
const OVERHEAD = 512
/** Milliseconds until a closing thread is ended by force. */
const PATIENCE = 5_000

interface Question {
  resolve(transcripts: readonly Transcript[]): void
  reject(error: Error): void
}

/**
 * Keeps transcripts in a file of their own, by a thread: no request waits for it.
 * The thread starts with the first transcript, or at once where the file has some
 * to expire.
 */
export class Archive {
  readonly #options: ArchiveOptions
  readonly #questions = new Map<number, Question>()
  #worker: Worker | null = null
  #asked = 0
  #waiting = 0
  #lost = 0
  #toldAt = -Infinity
  /** Why the last thread could not begin, and until when none is started. */
  #resting: { readonly why: string; readonly until: number } | null = null
  #closed = false

  constructor(options: ArchiveOptions) {
    this.#options = options
    if (existsSync(options.file)) this.#worker = this.#start()
  }

  /** @param packed how its answer is compressed; it is kept unpacked */
  keep(transcript: Transcript, packed: Packed | null): void {
    if (this.#closed) return
    const size = transcript.request.bytes.length + transcript.answer.bytes.length + OVERHEAD
    if (this.#waiting + size > (this.#options.maxWaiting ?? MAX_WAITING)) {
      this.#lose('more bodies come than can be written: some are not kept')
      return
    }
    const why = this.#restsFor()
    if (why !== null) {
      this.#lose(why)
      return
    }
    this.#waiting += size
    this.#post({ kind: 'keep', transcript, packed, size })
  }

  /**
   * All that is kept of a request id, the oldest first.
   * @throws Error when the file cannot be read
   */
  find(requestId: string): Promise<readonly Transcript[]> {
    if (this.#closed || !existsSync(this.#options.file)) return Promise.resolve([])
    const why = this.#restsFor()
    if (why !== null) return Promise.reject(new Error(why))
    const { promise, resolve, reject } = Promise.withResolvers<readonly Transcript[]>()
    const id = this.#asked++
    this.#questions.set(id, { resolve, reject })
    this.#post({ kind: 'find', id, requestId })
    return promise
  }

  /** Writes what waits, then closes. */
  async close(): Promise<void> {
    this.#closed = true
    const worker = this.#worker
    if (worker === null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const force = setTimeout(() => void worker.terminate(), PATIENCE)
    worker.once('exit', () => resolve())
    worker.ref()
    this.#post({ kind: 'close' })
    await promise
    clearTimeout(force)
  }

  /** null: there is a thread, or one may be started. */
  #restsFor(): string | null {
    const { clock } = this.#options
    return this.#resting !== null && clock.monotonic() < this.#resting.until ? this.#resting.why : null
  }

  #post(message: ToArchive): void {
    if (this.#worker === null) this.#worker = this.#start()
    this.#worker?.postMessage(message)
  }

  #start(): Worker {
    const script = threadUrl('archive-thread', import.meta.url)
    const worker = new Worker(script, { name: 'transcripts', workerData: this.#options.file, execArgv: [] })
    worker.unref()
    let cause = 'the thread has ended'
    let hasBegun = false
    worker.on('message', (message: FromArchive) => {
      hasBegun = true
      this.#hear(message)
    })
    worker.on('error', error => {
      cause = messageOf(error)
    })
    worker.once('exit', () => {
      this.#worker = null
      this.#waiting = 0
      for (const { reject } of this.#questions.values()) reject(new Error(cause))
      this.#questions.clear()
      // The next transcript starts another, unless that would end as this one has.
      if (!hasBegun) this.#resting = { why: cause, until: this.#options.clock.monotonic() + REST }
      if (!this.#closed) this.#lose(cause)
    })
    return worker
  }

  #hear(message: FromArchive): void {
    if (message.kind === 'kept') {
      this.#waiting -= message.size
      if (message.error !== null) this.#lose(message.error)
      return
    }
    const question = this.#questions.get(message.id)
    this.#questions.delete(message.id)
    if (message.kind === 'found') question?.resolve(message.transcripts)
    else question?.reject(new Error(message.error))
  }

  #lose(message: string): void {
    this.#lost++
    const now = this.#options.clock.monotonic()
    if (now - this.#toldAt < REMINDER) return
    this.#toldAt = now
    this.#options.onTrouble({ message, lost: this.#lost })
  }
}
