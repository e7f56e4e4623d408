import type { OpaqueValue } from './opaque.ts'
import type { EventOutput, ResponsePart } from './response.ts'

const NAMELESS = {
  kind: 'server', status: 502, message: 'the upstream sent a tool call without a name', code: 'upstream_invalid', param: null,
} as const

/** Numbers the parts of a response, and writes their events. */
export class PartsWriter {
  #next = 0
  #open: { readonly index: number, readonly kind: ResponsePart['type'] } | null = null

  /** Starts a part, even if other parts are still open. A tool call without a name becomes an error. @returns the index of the part */
  start(part: ResponsePart, out: EventOutput): number {
    const index = this.#next++
    const isNameless = part.type === 'tool_call' && part.name === ''
    out.push(isNameless ? { type: 'error', error: NAMELESS } : { type: 'part_start', index, part })
    return index
  }

  delta(index: number, text: string, out: EventOutput): void {
    if (text !== '') out.push({ type: 'delta', index, text })
  }

  end(index: number, opaque: OpaqueValue | null, out: EventOutput): void {
    out.push({ type: 'part_end', index, opaque })
  }

  /**
   * Adds text to the open part, for protocols that do not mark the bounds of parts. Text of another kind ends the open part and starts a
   * new one.
   *
   * @param opaque the value of the open part, which is reported if the part ends here
   */
  text(kind: 'text' | 'thinking' | 'refusal', text: string, opaque: OpaqueValue | null, out: EventOutput): void {
    if (text === '') return
    if (this.#open?.kind !== kind) {
      this.endText(opaque, out)
      this.#open = { index: this.start({ type: kind }, out), kind }
    }
    this.delta((this.#open as { readonly index: number }).index, text, out)
  }

  /** Ends the part that `text` opened. */
  endText(opaque: OpaqueValue | null, out: EventOutput): void {
    if (this.#open === null) return
    this.end(this.#open.index, this.#open.kind === 'thinking' ? opaque : null, out)
    this.#open = null
  }
}
