import { Worker } from 'node:worker_threads'
import { messageOf } from '../../base/message-of.ts'
import { threadUrl } from '../../base/thread-url.ts'
import { ReportError } from './report-error.ts'
import type { ReportResult, ReportArgs, ReportThreadResponse, ReportRequest, ReportName, ReportThreadRequest } from './report-messages.ts'

/** Questions that wait; what comes beyond is told to come back. */
const MAX_PENDING = 100

interface PendingReport {
  readonly question: ReportRequest
  readonly deadline: NodeJS.Timeout
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
}

export interface ReportClientOptions {
  readonly file: string
  /** ms. */
  readonly deadline: number
  readonly now: () => number
}

/**
 * The main thread's end of the reading thread. It is started when something is
 * asked; when it dies, what it was at is rejected and the next question starts
 * another. One question is with it at a time, so that those whose asker has gone
 * cost nothing.
 */
export class ReportClient {
  readonly #options: ReportClientOptions
  /** In the order in which they came; the first is with the thread. */
  readonly #pending: PendingReport[] = []
  #worker: Worker | null = null
  /** What the thread is at, also when nobody waits for it any more. */
  #runningId: number | null = null
  #lastId = 0
  #closed = false

  constructor(options: ReportClientOptions) {
    this.#options = options
  }

  /** @throws ReportError `unavailable`, `not_yet`; else what the report threw */
  run<S extends ReportName>(subject: S, ...asked: ReportArgs<S>): Promise<ReportResult<S>> {
    if (this.#closed) return Promise.reject(notReadyError('the gateway is shutting down'))
    if (this.#pending.length >= MAX_PENDING) {
      return Promise.reject(notReadyError('too many reports are asked for at once; try again'))
    }
    const question = { id: this.#lastId += 1, subject, now: this.#options.now(), asked }
    return new Promise<unknown>((resolve, reject) => {
      const { deadline: patience } = this.#options
      const deadline = setTimeout(() => {
        this.#removePending(question.id)?.reject(unavailableError(`the ledger did not answer within ${patience} ms; ` +
          'ask for less time at once'))
      }, patience)
      deadline.unref()
      this.#pending.push({ question, deadline, resolve, reject })
      this.#sendNext()
    }) as Promise<ReportResult<S>>
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#rejectAll('the gateway is shutting down')
    const worker = this.#worker
    if (worker === null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    worker.once('exit', () => resolve())
    this.#post('close')
    worker.ref()
    await promise
  }

  #sendNext(): void {
    const [first] = this.#pending
    if (first === undefined || this.#runningId !== null) return
    this.#runningId = first.question.id
    this.#worker ??= this.#start()
    this.#worker.ref()
    this.#post(first.question)
  }

  #post(message: ReportThreadRequest): void {
    this.#worker?.postMessage(message)
  }

  #start(): Worker {
    const worker = new Worker(threadUrl('report-thread', import.meta.url), {
      name: 'reports',
      workerData: this.#options.file,
      execArgv: [],
    })
    let cause = 'it ended by itself'
    worker.on('message', (message: ReportThreadResponse) => this.#onMessage(message))
    worker.on('error', error => {
      cause = messageOf(error)
    })
    worker.on('exit', () => {
      this.#worker = null
      const asked = this.#runningId
      this.#runningId = null
      if (asked !== null) this.#removePending(asked)?.reject(unavailableError(`the reading thread died: ${cause}`))
      this.#sendNext()
    })
    return worker
  }

  #onMessage(message: ReportThreadResponse): void {
    this.#runningId = null
    const waiting = this.#removePending(message.id)
    if ('answer' in message) {
      waiting?.resolve(message.answer)
    } else {
      const { code, message: text, field } = message.failure
      waiting?.reject(code === 'fault' ? new Error(text) : new ReportError(code, text, field))
    }
    this.#sendNext()
  }

  #removePending(id: number): PendingReport | null {
    const at = this.#pending.findIndex(({ question }) => question.id === id)
    const [waiting] = at === -1 ? [] : this.#pending.splice(at, 1)
    if (waiting === undefined) return null
    clearTimeout(waiting.deadline)
    // Nobody waits: the process may end.
    if (this.#pending.length === 0) this.#worker?.unref()
    return waiting
  }

  #rejectAll(message: string): void {
    for (const { deadline, reject } of this.#pending.splice(0)) {
      clearTimeout(deadline)
      reject(notReadyError(message))
    }
  }
}

function notReadyError(message: string): ReportError {
  return new ReportError('not_yet', message)
}

function unavailableError(message: string): ReportError {
  return new ReportError('unavailable', message)
}
