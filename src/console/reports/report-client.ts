import { Worker } from 'node:worker_threads'
import { messageOf } from '../../base/message-of.ts'
import { threadUrl } from '../../base/thread-url.ts'
import type { AnswerOf, AskedOf, FromReader, Question, Subject, ToReader } from './report-messages.ts'
import { ReportError } from './report-error.ts'

/** Questions that wait; what comes beyond is told to come back. */
const MOST_WAITING = 100

interface Waiting {
  readonly question: Question
  readonly deadline: NodeJS.Timeout
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
}

export interface LinkOptions {
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
export class ReaderLink {
  readonly #options: LinkOptions
  /** In the order in which they came; the first is with the thread. */
  readonly #waiting: Waiting[] = []
  #worker: Worker | null = null
  /** What the thread is at, also when nobody waits for it any more. */
  #asked: number | null = null
  #id = 0
  #closed = false

  constructor(options: LinkOptions) {
    this.#options = options
  }

  /** @throws ReportError `unavailable`, `not_yet`; else what the report threw */
  ask<S extends Subject>(subject: S, ...asked: AskedOf<S>): Promise<AnswerOf<S>> {
    if (this.#closed) return Promise.reject(notYet('the gateway is shutting down'))
    if (this.#waiting.length >= MOST_WAITING) {
      return Promise.reject(notYet('too many reports are asked for at once; try again'))
    }
    const question = { id: this.#id += 1, subject, now: this.#options.now(), asked }
    return new Promise<unknown>((resolve, reject) => {
      const { deadline: patience } = this.#options
      const deadline = setTimeout(() => {
        this.#settle(question.id)?.reject(unavailable(`the ledger did not answer within ${patience} ms; ` +
          'ask for less time at once'))
      }, patience)
      deadline.unref()
      this.#waiting.push({ question, deadline, resolve, reject })
      this.#next()
    }) as Promise<AnswerOf<S>>
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

  #next(): void {
    const [first] = this.#waiting
    if (first === undefined || this.#asked !== null) return
    this.#asked = first.question.id
    this.#worker ??= this.#start()
    this.#worker.ref()
    this.#post(first.question)
  }

  #post(message: ToReader): void {
    this.#worker?.postMessage(message)
  }

  #start(): Worker {
    const worker = new Worker(threadUrl('report-thread', import.meta.url), {
      name: 'reports',
      workerData: this.#options.file,
      execArgv: [],
    })
    let cause = 'it ended by itself'
    worker.on('message', (message: FromReader) => this.#hear(message))
    worker.on('error', error => {
      cause = messageOf(error)
    })
    worker.on('exit', () => {
      this.#worker = null
      const asked = this.#asked
      this.#asked = null
      if (asked !== null) this.#settle(asked)?.reject(unavailable(`the reading thread died: ${cause}`))
      this.#next()
    })
    return worker
  }

  #hear(message: FromReader): void {
    this.#asked = null
    const waiting = this.#settle(message.id)
    if ('answer' in message) {
      waiting?.resolve(message.answer)
    } else {
      const { code, message: text, field } = message.failure
      waiting?.reject(code === 'fault' ? new Error(text) : new ReportError(code, text, field))
    }
    this.#next()
  }

  #settle(id: number): Waiting | null {
    const at = this.#waiting.findIndex(({ question }) => question.id === id)
    const [waiting] = at === -1 ? [] : this.#waiting.splice(at, 1)
    if (waiting === undefined) return null
    clearTimeout(waiting.deadline)
    // Nobody waits: the process may end.
    if (this.#waiting.length === 0) this.#worker?.unref()
    return waiting
  }

  #rejectAll(message: string): void {
    for (const { deadline, reject } of this.#waiting.splice(0)) {
      clearTimeout(deadline)
      reject(notYet(message))
    }
  }
}

function notYet(message: string): ReportError {
  return new ReportError('not_yet', message)
}

function unavailable(message: string): ReportError {
  return new ReportError('unavailable', message)
}
