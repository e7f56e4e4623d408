import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/message-of.ts'
import { threadUrl } from '../base/thread-url.ts'
import type { FromArchive, ToArchive } from './messages.ts'
import type { Compression, Transcript } from './transcript.ts'

export interface ArchiveOptions {
  readonly file: string
  readonly clock: Pick<Clock, 'monotonic'>
  /** Bytes that may wait for the thread; more are not kept. 64 MiB unless told. */
  readonly maxWaiting?: number
  /** Something could not be kept; told once in a while. */
  readonly onFailure: (trouble: { readonly message: string; readonly lost: number }) => void
}

const MAX_WAITING = 64 * 1024 * 1024
/** Milliseconds between two reports of trouble. */
const REPORT_INTERVAL_MS = 60_000
/** Milliseconds until another thread is started where one could not begin: each takes a tenth of a second. */
const RESTART_DELAY_MS = 5_000
/** What a transcript takes beside its bodies, roughly. */
const OVERHEAD = 512
/** Milliseconds until a closing thread is ended by force. */
const CLOSE_TIMEOUT_MS = 5_000

interface PendingFind {
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
  readonly #pendingFinds = new Map<number, PendingFind>()
  #worker: Worker | null = null
  #nextId = 0
  #waiting = 0
  #lost = 0
  #reportedAt = -Infinity
  /** Why the last thread could not begin, and until when none is started. */
  #startBackoff: { readonly why: string; readonly until: number } | null = null
  #closed = false

  constructor(options: ArchiveOptions) {
    this.#options = options
    if (existsSync(options.file)) this.#worker = this.#start()
  }

  /** @param packed how its answer is compressed; it is kept unpacked */
  keep(transcript: Transcript, packed: Compression | null): void {
    if (this.#closed) return
    const size = transcript.request.bytes.length + transcript.response.bytes.length + OVERHEAD
    if (this.#waiting + size > (this.#options.maxWaiting ?? MAX_WAITING)) {
      this.#recordLost('more bodies come than can be written: some are not kept')
      return
    }
    const why = this.#backoffReason()
    if (why !== null) {
      this.#recordLost(why)
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
    const why = this.#backoffReason()
    if (why !== null) return Promise.reject(new Error(why))
    const { promise, resolve, reject } = Promise.withResolvers<readonly Transcript[]>()
    const id = this.#nextId++
    this.#pendingFinds.set(id, { resolve, reject })
    this.#post({ kind: 'find', id, requestId })
    return promise
  }

  /** Writes what waits, then closes. */
  async close(): Promise<void> {
    this.#closed = true
    const worker = this.#worker
    if (worker === null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const force = setTimeout(() => void worker.terminate(), CLOSE_TIMEOUT_MS)
    worker.once('exit', () => resolve())
    worker.ref()
    this.#post({ kind: 'close' })
    await promise
    clearTimeout(force)
  }

  /** null: there is a thread, or one may be started. */
  #backoffReason(): string | null {
    const { clock } = this.#options
    return this.#startBackoff !== null && clock.monotonic() < this.#startBackoff.until ? this.#startBackoff.why : null
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
      this.#handleMessage(message)
    })
    worker.on('error', error => {
      cause = messageOf(error)
    })
    worker.once('exit', () => {
      this.#worker = null
      this.#waiting = 0
      for (const { reject } of this.#pendingFinds.values()) reject(new Error(cause))
      this.#pendingFinds.clear()
      // The next transcript starts another, unless that would end as this one has.
      if (!hasBegun) this.#startBackoff = { why: cause, until: this.#options.clock.monotonic() + RESTART_DELAY_MS }
      if (!this.#closed) this.#recordLost(cause)
    })
    return worker
  }

  #handleMessage(message: FromArchive): void {
    if (message.kind === 'kept') {
      this.#waiting -= message.size
      if (message.error !== null) this.#recordLost(message.error)
      return
    }
    const question = this.#pendingFinds.get(message.id)
    this.#pendingFinds.delete(message.id)
    if (message.kind === 'found') question?.resolve(message.transcripts)
    else question?.reject(new Error(message.error))
  }

  #recordLost(message: string): void {
    this.#lost++
    const now = this.#options.clock.monotonic()
    if (now - this.#reportedAt < REPORT_INTERVAL_MS) return
    this.#reportedAt = now
    this.#options.onFailure({ message, lost: this.#lost })
  }
}
