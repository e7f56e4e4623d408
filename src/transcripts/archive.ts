import { existsSync } from 'node:fs'
import type { Clock } from '../base/clock.ts'
import { ThreadClient, ThreadError } from '../base/threads/thread-client.ts'
import { threadUrl } from '../base/threads/thread-url.ts'
import type { ArchiveRequest } from './archive-thread.ts'
import type { Compression, Transcript } from './transcript.ts'

export interface ArchiveOptions {
  readonly file: string
  readonly clock: Pick<Clock, 'monotonic'>
  /** Maximum bytes of waiting transcripts; default 64 MiB. Further transcripts are lost. */
  readonly maxWaiting?: number
  /** Called at most once a minute. `lost`: total number of lost transcripts. */
  readonly onFailure: (failure: { readonly message: string; readonly lost: number }) => void
}

const MAX_WAITING = 64 * 1024 * 1024
const REPORT_INTERVAL_MS = 60_000
/** Milliseconds until a thread that could not start is started again. Long, because each start takes 100 ms of CPU. */
const RESTART_DELAY_MS = 5_000
/** Approximate bytes of a transcript without its bodies. */
const OVERHEAD = 512
const CLOSE_TIMEOUT_MS = 5_000

/**
 * Keeps transcripts in a separate file. A thread writes the transcripts, so that no request waits. The thread also deletes expired
 * transcripts, so it starts at once if the file exists, and otherwise with the first transcript.
 */
export class Archive {
  readonly #options: ArchiveOptions
  readonly #thread: ThreadClient
  /** Bytes of the waiting transcripts. */
  #waiting = 0
  #lost = 0
  #reportedAt = -Infinity
  /** Why the last thread could not start, and until when no thread is started (ms on the monotonic clock); null = it could start. */
  #startBackoff: { readonly cause: string; readonly until: number } | null = null
  #closed = false

  constructor(options: ArchiveOptions) {
    this.#options = options
    this.#thread = new ThreadClient({
      name: 'transcripts',
      script: threadUrl('archive-thread', import.meta.url),
      workerData: options.file,
      serial: true,
      onExit: (cause, hasReplied) => this.#handleExit(cause, hasReplied),
    })
    if (existsSync(options.file)) this.#thread.start()
  }

  /** @param compression of the response body, which is stored decompressed */
  keep(transcript: Transcript, compression: Compression | null): void {
    if (this.#closed) return
    const size = transcript.request.bytes.length + transcript.response.bytes.length + OVERHEAD
    if (this.#waiting + size > (this.#options.maxWaiting ?? MAX_WAITING)) {
      this.#recordLost('more bodies come than can be written: some are not kept')
      return
    }
    const cause = this.#backoffCause()
    if (cause !== null) {
      this.#recordLost(cause)
      return
    }
    this.#waiting += size
    void this.#thread.request({ kind: 'keep', transcript, compression } satisfies ArchiveRequest)
      // Report only an error for this transcript. `#handleExit` reports the end of the thread, once for all transcripts.
      .catch((error: unknown) => {
        if (!(error instanceof ThreadError) || error.reason === 'thrown') this.#recordLost((error as Error).message)
      })
      .then(() => {
        this.#waiting -= size
      })
  }

  /** @returns the transcripts of a request, oldest first @throws Error if the file cannot be read */
  async find(requestId: string): Promise<readonly Transcript[]> {
    if (this.#closed || !existsSync(this.#options.file)) return []
    const cause = this.#backoffCause()
    if (cause !== null) throw new Error(cause)
    return this.#thread.request({ kind: 'find', requestId } satisfies ArchiveRequest)
  }

  /** Writes the waiting transcripts, and ends the thread. */
  close(): Promise<void> {
    this.#closed = true
    return this.#thread.close(CLOSE_TIMEOUT_MS)
  }

  /** @returns why no thread can be started now; null = the thread runs or can be started */
  #backoffCause(): string | null {
    const backoff = this.#startBackoff
    return backoff !== null && this.#options.clock.monotonic() < backoff.until ? backoff.cause : null
  }

  #handleExit(cause: string, hasReplied: boolean): void {
    if (!hasReplied) {
      this.#startBackoff = { cause, until: this.#options.clock.monotonic() + RESTART_DELAY_MS }
      // Drop the waiting transcripts, because they would start another thread, which would fail too.
      this.#thread.cancel(cause)
    }
    if (!this.#closed) this.#recordLost(cause)
  }

  #recordLost(message: string): void {
    this.#lost++
    const now = this.#options.clock.monotonic()
    if (now - this.#reportedAt < REPORT_INTERVAL_MS) return
    this.#reportedAt = now
    this.#options.onFailure({ message, lost: this.#lost })
  }
}
