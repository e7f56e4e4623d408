import type { CarriedThinking } from './capsule.ts'
import type { OpaqueValue } from './opaque.ts'
import type { ResponseEvent, ResponsePart } from './response.ts'

/** Maximum characters of thinking that is kept: a capsule holds no more. */
const MAX_KEPT = 128 * 1024

/** Keeps the thinking before a tool call, for clients whose protocol has no field for signatures of thinking. */
export class ThinkingCarrier {
  #kept: CarriedThinking[] = []
  #open: { readonly index: number, text: string } | null = null

  follow(event: ResponseEvent): void {
    if (event.type === 'part_start') {
      if (event.part.type === 'thinking') this.#open = { index: event.index, text: '' }
      else this.add(event.part, '', null)
    } else if (event.type === 'delta') {
      if (event.index === this.#open?.index && this.#open.text.length <= MAX_KEPT) this.#open.text += event.text
    } else if (event.type === 'part_end' && event.index === this.#open?.index) {
      this.add({ type: 'thinking' }, this.#open.text, event.opaque)
      this.#open = null
    }
  }

  /** Adds a whole part. Thinking without a signature is not kept, because the provider does not need it back. */
  add(part: ResponsePart, text: string, opaque: OpaqueValue | null): void {
    if (part.type === 'thinking' && opaque !== null && text.length <= MAX_KEPT) this.#kept.push({ text, opaque })
    else if (part.type === 'redacted_thinking') this.#kept.push({ text: null, opaque: part.opaque })
  }

  /** @returns the thinking that was added since the last `take`, for the next tool call */
  take(): readonly CarriedThinking[] {
    const kept = this.#kept
    this.#kept = []
    return kept
  }
}
