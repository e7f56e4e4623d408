import { systemClock, type Clock, type Timer } from '../base/clock.ts'
import { ThreadClient } from '../base/threads/thread-client.ts'
import { threadUrl } from '../base/threads/thread-url.ts'
import { safeCut, type TextSample, type GeneratedRun, type TextKind } from '../protocols/events/generated-text.ts'
import type { PromptText } from '../protocols/endpoint/protocol.ts'
import { MEDIA_TOKENS, estimateTokens, scanStrings } from '../protocols/request/request-estimate.ts'
import { BYTES_PER_TOKEN, tokensOfBytes } from '../protocols/usage/tokens-of-bytes.ts'

export interface TokenCounterOptions {
  readonly clock?: Clock
  /** Maximum requests that wait for the thread; default 512. */
  readonly queue?: number
  /** Maximum ms for one request, after which the thread is terminated; default 30,000. */
  readonly timeout?: number
  readonly script?: URL
}

type TextRun = Pick<GeneratedRun, 'bytes' | 'escaped'>

export type CountRequest =
  | { readonly kind: 'texts'; readonly texts: readonly TextRun[] }
  | { readonly kind: 'prompt'; readonly prompt: PromptText | null; readonly body: Uint8Array }
  | { readonly kind: 'response'; readonly members: readonly string[] | null; readonly body: Uint8Array }

/** The tokens of each text, or of the body; null = the body is not text. */
export type TokenCounts = readonly (number | null)[]

/** Bytes. Of a longer body, the thread gets only a sample of the text. */
const MAX_BODY_BYTES = 1024 * 1024
const SAMPLE_BYTES = 256 * 1024
/** Bytes. If more bytes wait for the thread, the sample is `BUSY_SAMPLE_BYTES` long. */
const BUSY_BYTES = 1024 * 1024
const BUSY_SAMPLE_BYTES = 4 * 1024
const MAX_PENDING = 512
const TIMEOUT_MS = 30_000
/** After this number of consecutive crashes, no thread is started for PAUSE_MS. */
const MAX_CRASHES = 3
const PAUSE_MS = 60_000
/** Milliseconds without work after which the thread ends, because its vocabulary takes 70 MB. Reading it again takes 300 ms. */
const IDLE_MS = 60_000

export function createTokenCounter(options: TokenCounterOptions = {}): TokenCounter {
  return new TokenCounter(options)
}

/**
 * Counts tokens in a thread. The first request starts the thread, and the next request after its end starts it again. Never rejects: if the
 * thread cannot count (too many requests wait, it crashed, or it takes too long), the tokens are estimated by bytes.
 */
export class TokenCounter {
  readonly #clock: Clock
  readonly #maxPending: number
  readonly #timeoutMs: number
  readonly #thread: ThreadClient
  #watchdog: Timer | null = null
  #idleTimer: Timer | null = null
  /** Bytes of the requests to which the thread has not replied. */
  #pendingBytes = 0
  #crashes = 0
  #pausedUntil = 0
  #isClosing = false

  constructor({ clock = systemClock, queue = MAX_PENDING, timeout = TIMEOUT_MS, script }: TokenCounterOptions) {
    this.#clock = clock
    this.#maxPending = queue
    this.#timeoutMs = timeout
    this.#thread = new ThreadClient({
      name: 'token-counter',
      script: script ?? threadUrl('count-thread', import.meta.url),
      onExit: () => this.#countCrash(),
    })
  }

  /** Counts generated text. The tokens of text that was not kept are extrapolated from the kept text. */
  async generated({ runs, keptBytes, generatedBytes: came }: TextSample): Promise<Record<TextKind, number>> {
    const sample = this.#isBusy ? beginningOf(runs, BUSY_SAMPLE_BYTES) : runs
    const counted = sample === runs ? keptBytes : bytesByKind(sample)
    const counts = runs.length === 0 ? [] : await this.#request({ kind: 'texts', texts: sample.map(copyOf) })
    const tokens = { content: 0, reasoning: 0, tool: 0 }
    if (counts) for (const [i, { kind }] of sample.entries()) tokens[kind] += counts[i] ?? 0
    for (const kind of ['content', 'reasoning', 'tool'] as const) {
      if (counts === null || counted[kind] === 0) tokens[kind] = tokensOfBytes(came[kind])
      else tokens[kind] = Math.round((tokens[kind] * came[kind]) / counted[kind])
    }
    return tokens
  }

  /** @returns null = the body is not JSON, or its input is not text */
  prompt(prompt: PromptText | null, body: Buffer): Promise<number | null> {
    return this.#body(body, bytes => ({ kind: 'prompt', prompt, body: bytes }))
  }

  /** @returns null = the body is not JSON, or is not text */
  response(members: readonly string[] | null, body: Buffer): Promise<number | null> {
    return this.#body(body, bytes => ({ kind: 'response', members, body: bytes }))
  }

  /** Waits until the thread has replied to all requests, then ends it. Later requests are estimated by bytes. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#thread.idle()
    await this.#thread.terminate()
  }

  async #body(body: Buffer, question: (bytes: Uint8Array) => CountRequest): Promise<number | null> {
    if (!isJsonObject(body)) return null
    if (this.#isBusy && body.length > BUSY_SAMPLE_BYTES) return this.#sampledBody(body, BUSY_SAMPLE_BYTES)
    if (body.length > MAX_BODY_BYTES) return this.#sampledBody(body, SAMPLE_BYTES)
    const counts = await this.#request(question(Uint8Array.from(body)))
    return counts ? (counts[0] ?? null) : estimateTokens(body)
  }

  /** Counts the beginning of the text, and extrapolates the rest. */
  async #sampledBody(body: Buffer, sampleBytes: number): Promise<number> {
    const sample: Buffer[] = []
    let sampled = 0
    const { textBytes, media } = scanStrings(body, (start, end) => {
      if (sampled >= sampleBytes) return
      const limit = start + sampleBytes - sampled
      const text = body.subarray(start, end <= limit ? end : safeCut(body, start, limit))
      sample.push(text)
      sampled += text.length
    })
    const text = { bytes: Uint8Array.from(Buffer.concat(sample)), escaped: true }
    const counts = sampled === 0 ? null : await this.#request({ kind: 'texts', texts: [text] })
    const tokens = counts?.[0] ?? sampled / BYTES_PER_TOKEN
    return Math.ceil((tokens * textBytes) / Math.max(1, sampled)) + media * MEDIA_TOKENS
  }

  /** @returns null = the thread cannot count, or has not replied in time */
  async #request(request: CountRequest): Promise<TokenCounts | null> {
    const isPaused = this.#clock.monotonic() < this.#pausedUntil
    if (isPaused || this.#isClosing || this.#thread.pending >= this.#maxPending) return null
    const arrays = request.kind === 'texts' ? request.texts.map(({ bytes }) => bytes) : [request.body]
    const transfer = arrays.map(({ buffer }) => buffer as ArrayBuffer)
    const bytes = transfer.reduce((sum, { byteLength }) => sum + byteLength, 0)
    this.#pendingBytes += bytes
    const counts = this.#thread.request<TokenCounts>(request, { transfer })
    this.#idleTimer?.cancel()
    this.#idleTimer = null
    this.#watchdog ??= this.#startWatchdog()
    try {
      const result = await counts
      this.#crashes = 0
      return result
    } catch {
      // The thread has ended or failed, so the caller estimates the tokens.
      return null
    } finally {
      this.#pendingBytes -= bytes
      this.#watchdog?.cancel()
      this.#watchdog = this.#thread.pending > 0 ? this.#startWatchdog() : null
      if (this.#thread.pending === 0) this.#idleTimer ??= this.#clock.setTimeout(() => void this.#thread.terminate(), IDLE_MS)
    }
  }

  get #isBusy(): boolean {
    return this.#pendingBytes > BUSY_BYTES
  }

  /** Starts a timer that terminates the thread if the thread makes no progress. */
  #startWatchdog(): Timer {
    return this.#clock.setTimeout(() => {
      this.#countCrash()
      void this.#thread.terminate()
    }, this.#timeoutMs)
  }

  #countCrash(): void {
    if (++this.#crashes < MAX_CRASHES) return
    this.#crashes = 0
    this.#pausedUntil = this.#clock.monotonic() + PAUSE_MS
  }
}

/** Copies the bytes to a separate buffer, which can be transferred to the thread. */
const copyOf = ({ bytes, escaped }: GeneratedRun): TextRun => ({ bytes: Uint8Array.from(bytes), escaped })

function beginningOf(runs: readonly GeneratedRun[], maxBytes: number): GeneratedRun[] {
  const sample: GeneratedRun[] = []
  let left = maxBytes
  for (const run of runs) {
    const bytes = run.bytes.length <= left ? run.bytes : run.bytes.subarray(0, safeCut(run.bytes, 0, left))
    if (bytes.length > 0) sample.push({ ...run, bytes })
    left -= bytes.length
  }
  return sample
}

function bytesByKind(runs: readonly GeneratedRun[]): Record<TextKind, number> {
  const bytes = { content: 0, reasoning: 0, tool: 0 }
  for (const run of runs) bytes[run.kind] += run.bytes.length
  return bytes
}

function isJsonObject(body: Buffer): boolean {
  return body.find(byte => byte > 0x20) === 0x7b
}
