import { GatewayError } from '../../../base/errors.ts'
import type { CollectedPart, NeutralError, NeutralResponse, ResponseEvent, StopEvent, TokenUsage } from '../response.ts'

/** Maximum characters of text, images and opaque values. Each part counts as `PART_COST` characters more. */
const MAX_COLLECTED = 32 * 1024 * 1024
const PART_COST = 512

/** Collects the events of a whole response. */
export class ResponseCollector {
  readonly #parts: { -readonly [Member in keyof CollectedPart]: CollectedPart[Member] }[] = []
  #id: string | null = null
  #model: string | null = null
  #stop: StopEvent | null = null
  #usage: TokenUsage | null = null
  #error: NeutralError | null = null
  #size = 0

  /** The response so far, or the first error. */
  get result(): NeutralResponse | NeutralError {
    return this.#error ?? { id: this.#id, model: this.#model, parts: this.#parts, stop: this.#stop, usage: this.#usage }
  }

  /** @throws GatewayError answer_too_large */
  add(event: ResponseEvent): void {
    switch (event.type) {
      case 'start':
        this.#id = event.id
        this.#model = event.model
        this.#usage = event.usage
        break
      case 'part_start':
        this.#count(PART_COST + ('data' in event.part ? event.part.data.length : 0))
        this.#parts[event.index] = { part: event.part, text: '', opaque: null }
        break
      case 'delta': {
        this.#count(event.text.length)
        const part = this.#parts[event.index]
        if (part) part.text += event.text
        break
      }
      case 'part_end': {
        this.#count(event.opaque?.value.length ?? 0)
        const part = this.#parts[event.index]
        if (part) part.opaque = event.opaque
        break
      }
      case 'stop':
        this.#stop = event
        break
      case 'usage':
        this.#usage = event.usage
        break
      case 'error':
        this.#error ??= event.error
        break
    }
  }

  #count(characters: number): void {
    this.#size += characters
    if (this.#size > MAX_COLLECTED) {
      throw new GatewayError('answer_too_large', `the response is larger than the ${MAX_COLLECTED >> 20} MB that can be held`)
    }
  }
}
