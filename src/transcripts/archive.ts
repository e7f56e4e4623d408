import { existsSync } from 'node:fs'
import type { Clock } from '../base/clock.ts'
import { ThreadClient, ThreadError } from '../base/threads/thread-client.ts'
import { threadUrl } from '../base/threads/thread-url.ts'
import type { ArchiveRequest } from './archive-thread.ts'
import type { Compression, Transcript } from './transcript.ts'

export interface ArchiveOptions {
  readonly file: string
  readonly clock: Pick<Clock, 'monotonic'>
  /** Maximum bytes of waiting transcripts; further ones are lost. Default: 64 MiB. */
  readonly maxWaiting?: number
  /** `lost` is the total number of lost transcripts. Called at most once a minute. */
  readonly onFailure: (failure: { readonly message: string; readonly lost: number }) => void
}

const MAX_WAITING = 64 * 1024 * 1024
const REPORT_INTERVAL_MS = 60_000
/** ms before a thread that could not start is started again: each start takes 100 ms of CPU. */
const RESTART_DELAY_MS = 5_000
/** Approximate bytes of a transcript without its bodies. */
const OVERHEAD = 512
const CLOSE_TIMEOUT_MS = 5_000

/**
 * Keeps transcripts in a separate file. A thread writes them, so that no request waits.
 * The thread starts with the first transcript, or at once if the file exists, because it also deletes expired transcripts.
 */
export class Archive {
  readonly #options: ArchiveOptions
  readonly #thread: ThreadClient
  /** Bytes. */
  #waiting = 0
  #lost = 0
  #reportedAt = -Infinity
  /** Why the last thread could not start, and when the next start is allowed (ms, monotonic). */
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
      // #handleExit reports the end of the thread once.
      .catch((error: unknown) => {
        if (!(error instanceof ThreadError) || error.reason === 'thrown') this.#recordLost((error as Error).message)
      })
      .then(() => {
        this.#waiting -= size
      })
  }

  /** The oldest first. @throws Error when the file cannot be read */
  async find(requestId: string): Promise<readonly Transcript[]> {
    if (this.#closed || !existsSync(this.#options.file)) return []
    const cause = this.#backoffCause()
    if (cause !== null) throw new Error(cause)
    return this.#thread.request({ kind: 'find', requestId } satisfies ArchiveRequest)
  }

  /** Writes waiting transcripts, then closes. */
  close(): Promise<void> {
    this.#closed = true
    return this.#thread.close(CLOSE_TIMEOUT_MS)
  }

  /** null = the thread runs, or can be started. */
  #backoffCause(): string | null {
    const backoff = this.#startBackoff
    return backoff !== null && this.#options.clock.monotonic() < backoff.until ? backoff.cause : null
  }

  #handleExit(cause: string, hasReplied: boolean): void {
    if (!hasReplied) {
      this.#startBackoff = { cause, until: this.#options.clock.monotonic() + RESTART_DELAY_MS }
      // Waiting transcripts would start another thread, which would fail too.
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
