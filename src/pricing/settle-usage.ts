import { beginsJson, isBlank } from '../protocols/json/json-text.ts'
import type { Endpoint, InputEstimate, MeteringKind } from '../protocols/endpoint/protocol.ts'
import { readBodyUsage, type ReportedUsage, type ServingModels } from '../protocols/usage/reported-usage.ts'
import { readCharacters, estimateTextTokens } from '../protocols/request/request-estimate.ts'
import { requestsBackground, isErrorBody, isQueuedResponse } from '../protocols/usage/response-body.ts'
import type { StreamMeter } from '../protocols/events/stream-meter.ts'
import { blankUsage, minInputTokens, minOutputTokens, type Usage } from '../protocols/usage/usage.ts'
import type { TokenCounter } from './token-counter.ts'

export type MeteredResponse =
  | { readonly kind: 'stream'; readonly meter: StreamMeter }
  /** `body`: of an incomplete response, the received part. */
  | { readonly kind: 'body'; readonly body: Buffer }
  /** No body has arrived, or a body arrived and was not kept, such as audio. */
  | { readonly kind: 'none'; readonly delivered: boolean }

export interface SettleInput {
  readonly endpoint: Endpoint
  readonly end: 'complete' | 'client_gone' | 'other'
  /** null = no upstream has accepted the request, or no response has arrived yet. */
  readonly response: MeteredResponse | null
  /** The body as it was sent upstream, decompressed; null = the gateway cannot read it. */
  readonly request: Buffer | null
  /** The estimated input, if the input is not in a request body. */
  readonly estimate?: InputEstimate | null
  /** What is billed if the client disconnected before any response arrived. */
  readonly abandoned: 'prompt' | 'none'
}

export interface SettledUsage {
  readonly usage: Usage
  /** Who counted the tokens: the upstream, the gateway, both, or nobody. */
  readonly source: 'reported' | 'estimated' | 'mixed' | 'none'
  /** false = the request costs nothing. true = the request is billed, but its cost can be unknown. */
  readonly billed: boolean
  /** true = the upstream reported invalid counts, which the gateway replaced by its own count or by null. */
  readonly suspect: boolean
  /** true = a part of the response was neither read nor reported, so that its usage is unknown. */
  readonly unread: boolean
  /** The models that served the request; absent = only the requested model. */
  readonly servingModels?: ServingModels
}

/**
 * Decides which usage is billed: the reported usage, even if the response is incomplete. If counts are missing or invalid, counts the
 * tokens and returns a promise. If no output was generated, nothing is billed, except the prompt if the client disconnected and
 * `abandoned` is `prompt`.
 */
export function settleUsage(input: SettleInput, counter: TokenCounter): SettledUsage | Promise<SettledUsage> {
  const { metering } = input.endpoint
  if (metering === null || input.response === null) return noCharge()
  return new UsageSettler(input, metering, counter).settle()
}

/**
 * The reported usage of a stream. Some streams report zeros at first and the usage at the end. So before the end, 0 input tokens become
 * null, and 0 output tokens become null if text has arrived.
 */
export function reportedBy(meter: StreamMeter, reading: ReportedUsage | null): Usage {
  if (reading === null) return blankUsage()
  const { usage } = reading
  if (meter.terminated === true) return usage
  const inputTokens = usage.inputTokens === 0 ? null : usage.inputTokens
  const outputTokens = usage.outputTokens === 0 && meter.sawContent ? null : usage.outputTokens
  return { ...usage, inputTokens, outputTokens }
}

class UsageSettler {
  readonly #input: SettleInput
  readonly #metering: MeteringKind
  readonly #counter: TokenCounter
  readonly #reading: ReportedUsage | null
  readonly #reported: Usage
  /** true = the response contains an error of the protocol. */
  readonly #failed: boolean
  /** true = the response has ended properly. */
  readonly #isComplete: boolean
  readonly #generated: boolean
  /** true = the billed usage contains reported counts. */
  #usesReported = false
  #usesEstimate = false

  constructor(input: SettleInput, metering: MeteringKind, counter: TokenCounter) {
    this.#input = input
    this.#metering = metering
    this.#counter = counter
    const { response, endpoint, end } = input
    const meter = response?.kind === 'stream' ? response.meter : null
    const body = response?.kind === 'body' ? response.body : null
    this.#reading = body ? readBodyUsage(endpoint.usage, body) : (meter?.reading() ?? null)
    this.#reported = meter ? reportedBy(meter, this.#reading) : (this.#reading?.usage ?? blankUsage())
    const { inputTokens, outputTokens } = this.#reported
    const onlyError = body !== null && (inputTokens ?? outputTokens) === null && isErrorBody(body)
    this.#failed = meter?.sawError === true || onlyError
    this.#isComplete = end === 'complete' && !this.#failed
    if (response?.kind === 'none') this.#generated = response.delivered
    else this.#generated = body ? !isBlank(body) && !onlyError : meter !== null && this.#didGenerate(meter)
  }

  /** @returns true = text has arrived, or the reported usage has output, such as hidden reasoning before a failure */
  #didGenerate(meter: StreamMeter): boolean {
    return meter.sawContent || (meter.terminated === true && (this.#reported.outputTokens ?? 0) > 0)
  }

  settle(): SettledUsage | Promise<SettledUsage> {
    if (this.#runsInBackground) return this.#withInput().then(usage => this.#settled({ ...usage, outputTokens: null }))
    const { inputTokens, outputTokens } = this.#reported
    if (!this.#isComplete && !this.#generated) {
      if (this.#input.end !== 'client_gone') return noCharge()
      // An upstream that has reported usage has begun to work, and bills the request.
      if ((inputTokens ?? outputTokens) === null) return this.#abandoned()
    }
    // In the usual case, the upstream has reported all counts, and no promise is needed.
    const isReported = this.#metering === 'text' && inputTokens !== null && outputTokens !== null && this.#coversOutput
    if (!isReported) return this.#usage().then(usage => this.#settled(usage))
    this.#usesReported = true
    return this.#settled(this.#reported)
  }

  /** true = the response is incomplete, but the upstream continues it in the background, so that its usage is unknown. */
  get #runsInBackground(): boolean {
    const { endpoint, response, request } = this.#input
    if (this.#isComplete || this.#failed || !endpoint.supportsBackground) return false
    if (response?.kind === 'stream' && response.meter.terminated === true) return false
    return request !== null && requestsBackground(request)
  }

  async #abandoned(): Promise<SettledUsage> {
    if (this.#input.abandoned === 'none') return noCharge()
    const inputTokens = await this.#prompt()
    if (inputTokens === null) return noCharge()
    const { estimate } = this.#input
    return this.#settled({ ...blankUsage(), ...estimate, inputTokens, outputTokens: 0, characters: this.#characters })
  }

  #settled(usage: Usage): SettledUsage {
    const makers = this.#reading?.servingModels
    return {
      usage,
      source: this.#usesReported ? (this.#usesEstimate ? 'mixed' : 'reported') : (this.#usesEstimate ? 'estimated' : 'none'),
      billed: true,
      suspect: this.#reading?.suspect ?? false,
      unread: this.#isIncomplete(usage),
      ...makers && { servingModels: makers },
    }
  }

  /** @returns true = a count is missing that the gateway cannot count, because upstreams report images and audio only at the end */
  #isIncomplete({ inputTokens, outputTokens, seconds }: Usage): boolean {
    if (this.#metering === 'text') return outputTokens === null
    if (this.#isComplete) return false
    if (this.#metering === 'transcript') return (inputTokens ?? seconds) === null
    return this.#metering === 'images' && outputTokens === null
  }

  async #usage(): Promise<Usage> {
    switch (this.#metering) {
      case 'text':
        return this.#withOutput(await this.#withInput())
      case 'embedding':
        return { ...this.#reported, inputTokens: await this.#inputTokens() }
      case 'speech': {
        const characters = this.#characters
        if (characters !== null || this.#reported.inputTokens !== null) this.#usesReported = true
        return { ...this.#reported, characters }
      }
      case 'images':
        return this.#isComplete ? this.#asReported() : { ...this.#reported, inputTokens: await this.#inputTokens() }
      case 'transcript':
        // Count the received text of an incomplete response.
        return this.#isComplete ? this.#asReported() : this.#withOutput(this.#asReported())
      case 'unmetered':
        return blankUsage()
    }
  }

  async #withInput(): Promise<Usage> {
    const estimate = this.#reported.inputTokens === null ? this.#input.estimate : null
    return { ...this.#reported, ...estimate, inputTokens: await this.#inputTokens() }
  }

  #asReported(): Usage {
    const { inputTokens, seconds, images } = this.#reported
    if (inputTokens !== null || seconds !== null || images !== null) this.#usesReported = true
    return this.#reported
  }

  /** The number of characters to speak; null = not speech. */
  get #characters(): number | null {
    const { request } = this.#input
    return request && this.#metering === 'speech' ? readCharacters(request) : null
  }

  async #inputTokens(): Promise<number | null> {
    const { inputTokens } = this.#reported
    if (inputTokens !== null) {
      this.#usesReported = true
      return inputTokens
    }
    const counted = await this.#prompt()
    return counted === null ? null : Math.max(counted, minInputTokens(this.#reported))
  }

  async #prompt(): Promise<number | null> {
    const { endpoint, request, estimate } = this.#input
    const prompt = () => request && this.#counter.prompt(endpoint.prompt, request)
    const tokens = estimate ? estimate.inputTokens : await prompt()
    if (tokens !== null) this.#usesEstimate = true
    return tokens
  }

  get #coversOutput(): boolean {
    const { response } = this.#input
    return this.#isComplete || response?.kind !== 'stream' || response.meter.isOutputReported
  }

  /** true = some output is neither reported nor countable. */
  get #isUncountable(): boolean {
    const { response } = this.#input
    if (response?.kind !== 'stream' || !response.meter.uncountable) return false
    return this.#reported.outputTokens === null || !this.#coversOutput
  }

  /** Uses the reported output if it covers the whole output; otherwise the count, but at least the reported output. */
  async #withOutput(usage: Usage): Promise<Usage> {
    const reported = this.#reported.outputTokens
    if (this.#isUncountable) return { ...usage, outputTokens: null }
    const counted = reported !== null && this.#coversOutput ? null : await this.#count()
    if (counted && (reported === null || reported < counted.outputTokens)) {
      return { ...usage, ...counted, outputTokens: Math.max(counted.outputTokens, minOutputTokens(usage)) }
    }
    if (reported !== null) this.#usesReported = true
    return usage
  }

  async #count(): Promise<CountedOutput | null> {
    const { response, endpoint } = this.#input
    if (response?.kind === 'stream') {
      // A stream that was not read has unknown output, and not 0.
      return response.meter.terminated === null ? null : this.#countStream(response.meter)
    }
    if (response?.kind !== 'body') return null
    // Estimate an incomplete body by its bytes, because it is not valid JSON and its texts cannot be found.
    const { body } = response
    if (endpoint.supportsBackground && isQueuedResponse(body)) return null
    const outputTokens = this.#isComplete ? await this.#counter.response(endpoint.responseMembers, body) : this.#estimateInterrupted(body)
    if (outputTokens === null) return null
    this.#usesEstimate = true
    return { outputTokens, reasoningTokens: this.#reported.reasoningTokens }
  }

  /** Estimates only JSON, and plain text of transcripts. Other text is not the model's output, for example the HTML page of a proxy. */
  #estimateInterrupted(body: Buffer): number | null {
    return this.#metering === 'transcript' || beginsJson(body) ? estimateTextTokens(body) : null
  }

  async #countStream(meter: StreamMeter): Promise<CountedOutput> {
    const { content, reasoning, tool } = await this.#counter.generated(meter.partial())
    if (meter.sawContent) this.#usesEstimate = true
    const known = this.#reported.reasoningTokens
    return { outputTokens: content + tool + (known ?? reasoning), reasoningTokens: known ?? (reasoning > 0 ? reasoning : null) }
  }
}

type CountedOutput = Pick<Usage, 'reasoningTokens'> & { readonly outputTokens: number }

export function noCharge(): SettledUsage {
  return { usage: blankUsage(), source: 'none', billed: false, suspect: false, unread: false }
}
