import { Worker } from 'node:worker_threads'
import { systemClock } from '../base/clock.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { threadUrl } from '../base/thread-url.ts'
import type { TextSample, GeneratedRun, TextKind } from '../protocols/shared/generated-text.ts'
import type { EndpointName } from '../protocols/shared/names.ts'
import { BYTES_PER_TOKEN, MEDIA_TOKENS, estimateTokens, scanStrings, tokensOfBytes } from '../protocols/shared/request-estimate.ts'

/**
 * Counts tokens that nobody reported, off the event loop. It never rejects: what
 * the thread cannot do (too much waits, it died, it takes too long) is estimated
 * by bytes.
 */
export interface TokenCounter {
  /** Tokens of generated text, by kind. What was not kept is extrapolated from what was. */
  generated(generated: TextSample): Promise<Record<TextKind, number>>
  /** Tokens of a request's prompt; null where the body is not JSON, or its input is not text. */
  prompt(endpoint: EndpointName, body: Buffer): Promise<number | null>
  /** Tokens of a whole answer's text; null where it is not JSON, or not text. */
  response(endpoint: EndpointName, body: Buffer): Promise<number | null>
  /** Waits for what is being counted, then stops the thread; what comes later is estimated by bytes. */
  close(): Promise<void>
}

export interface TokenCounterOptions {
  readonly clock?: Clock
  /** How many requests may wait. */
  readonly queue?: number
  /** Milliseconds after which the thread is given up over one request. */
  readonly timeout?: number
  /** The thread's code. */
  readonly script?: URL
}

/** What the thread is asked. */
export type CountRequest = { readonly id: number } & CountInput

interface TextRun {
  readonly bytes: Uint8Array
  readonly escaped: boolean
}

type CountInput =
  | { readonly what: 'texts'; readonly texts: readonly TextRun[] }
  | { readonly what: 'prompt' | 'answer'; readonly endpoint: EndpointName; readonly body: Uint8Array }

/** What it answers: one count for each text, or for the body. */
export interface CountResponse {
  readonly id: number
  readonly counts: readonly (number | null)[]
}

type Counts = CountResponse['counts']

// Above this a body is not copied to the thread: a sample of its text gives the rate.
const MAX_BODY_BYTES = 1024 * 1024
const SAMPLE_BYTES = 256 * 1024
const MAX_QUEUED = 512
const TIMEOUT_MS = 30_000
// A thread that dies this often without an answer will not do better the next time.
const MAX_CRASHES = 3
const PAUSE_MS = 60_000
// A thread without work for so long ends: its vocabulary takes 70 MB, and 300 ms to read again.
const IDLE_MS = 60_000

/** Makes the counter; its thread starts with the first request, and again after it died. */
export function createTokenCounter(options: TokenCounterOptions = {}): TokenCounter {
  return new ThreadCounter(options)
}

class ThreadCounter implements TokenCounter {
  readonly #clock: Clock
  readonly #queue: number
  readonly #timeout: number
  readonly #script: URL
  readonly #waiting = new Map<number, (counts: Counts | null) => void>()
  #thread: Worker | null = null
  #watchdog: Timer | null = null
  /** Runs while the thread has nothing to do. */
  #idle: Timer | null = null
  #lastId = 0
  #crashes = 0
  #pausedUntil = 0
  #isClosing = false
  #resolveClose: (() => void) | null = null

  constructor({ clock = systemClock, queue = MAX_QUEUED, timeout: patience = TIMEOUT_MS, script }: TokenCounterOptions) {
    this.#clock = clock
    this.#queue = queue
    this.#timeout = patience
    this.#script = script ?? threadUrl('count-thread', import.meta.url)
  }

  async generated({ runs, keptBytes: kept, generatedBytes: came }: TextSample): Promise<Record<TextKind, number>> {
    const counts = runs.length === 0 ? [] : await this.#request({ what: 'texts', texts: runs.map(copyOf) })
    const tokens = { content: 0, reasoning: 0, tool: 0 }
    if (counts) {
      for (const [i, { kind }] of runs.entries()) tokens[kind] += counts[i] ?? 0
    }
    for (const kind of ['content', 'reasoning', 'tool'] as const) {
      if (counts === null || kept[kind] === 0) tokens[kind] = tokensOfBytes(came[kind])
      else tokens[kind] = Math.round((tokens[kind] * came[kind]) / kept[kind])
    }
    return tokens
  }

  prompt(endpoint: EndpointName, body: Buffer): Promise<number | null> {
    return this.#body('prompt', endpoint, body)
  }

  response(endpoint: EndpointName, body: Buffer): Promise<number | null> {
    return this.#body('answer', endpoint, body)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    if (this.#waiting.size > 0) await new Promise<void>(resolve => (this.#resolveClose = resolve))
    await this.#thread?.terminate()
    this.#thread = null
  }

  async #body(what: 'prompt' | 'answer', endpoint: EndpointName, body: Buffer): Promise<number | null> {
    if (!isJsonObject(body)) return null
    if (body.length > MAX_BODY_BYTES) return this.#largeBody(body)
    const counts = await this.#request({ what, endpoint, body: Uint8Array.from(body) })
    return counts ? (counts[0] ?? null) : estimateTokens(body)
  }

  /** Counts the beginning of the text, and takes the rest to be like it. */
  async #largeBody(body: Buffer): Promise<number> {
    const sample: Buffer[] = []
    let sampled = 0
    const { textBytes, media } = scanStrings(body, (start, end) => {
      if (sampled >= SAMPLE_BYTES) return
      const text = body.subarray(start, Math.min(end, start + SAMPLE_BYTES - sampled))
      sample.push(text)
      sampled += text.length
    })
    const text = { bytes: Uint8Array.from(Buffer.concat(sample)), escaped: true }
    const counts = sampled === 0 ? null : await this.#request({ what: 'texts', texts: [text] })
    const tokens = counts?.[0] ?? sampled / BYTES_PER_TOKEN
    return Math.ceil((tokens * textBytes) / Math.max(1, sampled)) + media * MEDIA_TOKENS
  }

  /** Null when the thread gave no answer. */
  #request(question: CountInput): Promise<Counts | null> {
    const thread = this.#isClosing || this.#waiting.size >= this.#queue ? null : this.#start()
    if (!thread) return Promise.resolve(null)
    return new Promise(resolve => {
      const id = ++this.#lastId
      this.#waiting.set(id, resolve)
      this.#idle?.cancel()
      this.#idle = null
      this.#watchdog ??= this.#startWatchdog(thread)
      // A process that has nothing else to do waits for a count, but not for an idle thread.
      thread.ref()
      const request: CountRequest = { id, ...question }
      thread.postMessage(request, transferable(question))
    })
  }

  #start(): Worker | null {
    if (this.#thread) return this.#thread
    if (this.#clock.monotonic() < this.#pausedUntil) return null
    // No flags of the parent: a loader of tests or a debugger has no business there.
    const thread = new Worker(this.#script, { execArgv: [], name: 'token-counter' })
    thread.on('message', (answer: CountResponse) => this.#onResponse(thread, answer))
    // What went wrong in there is told by its exit.
    thread.on('error', () => this.#onThreadExit(thread))
    thread.on('exit', () => this.#onThreadExit(thread))
    thread.unref()
    this.#thread = thread
    return thread
  }

  #onResponse(thread: Worker, { id, counts }: CountResponse): void {
    const resolve = this.#waiting.get(id)
    if (thread !== this.#thread || !resolve) return
    this.#crashes = 0
    this.#waiting.delete(id)
    this.#watchdog?.cancel()
    this.#watchdog = this.#waiting.size > 0 ? this.#startWatchdog(thread) : null
    resolve(counts)
    this.#stopWhenIdle()
  }

  /** Gives a thread up that makes no progress, whatever it chews on. */
  #startWatchdog(thread: Worker): Timer {
    return this.#clock.setTimeout(() => {
      this.#onThreadExit(thread)
      void thread.terminate()
    }, this.#timeout)
  }

  #stopThread(): void {
    const thread = this.#thread
    this.#idle = null
    this.#thread = null
    void thread?.terminate()
  }

  #onThreadExit(thread: Worker): void {
    if (thread !== this.#thread) return
    this.#thread = null
    this.#watchdog?.cancel()
    this.#watchdog = null
    if (++this.#crashes >= MAX_CRASHES) {
      this.#crashes = 0
      this.#pausedUntil = this.#clock.monotonic() + PAUSE_MS
    }
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const resolve of waiting) resolve(null)
    this.#stopWhenIdle()
  }

  #stopWhenIdle(): void {
    if (this.#waiting.size > 0) return
    this.#thread?.unref()
    this.#idle ??= this.#clock.setTimeout(() => this.#stopThread(), IDLE_MS)
    this.#resolveClose?.()
  }
}

/** Of its own memory, which can be given to the thread. */
function copyOf({ bytes, escaped }: GeneratedRun): TextRun {
  return { bytes: Uint8Array.from(bytes), escaped }
}

function transferable(question: CountInput): ArrayBuffer[] {
  const arrays = question.what === 'texts' ? question.texts.map(({ bytes }) => bytes) : [question.body]
  return arrays.map(({ buffer }) => buffer as ArrayBuffer)
}

function isJsonObject(body: Buffer): boolean {
  const first = body.find(byte => byte > 0x20)
  return first === 0x7b
}
