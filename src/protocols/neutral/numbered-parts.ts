import { PartsWriter } from './parts-writer.ts'
import type { EventOutput, ResponsePart } from './response.ts'

/** The parts of a response whose protocol numbers the blocks. The signature of a block is reported at the end of the block. */
export class NumberedParts {
  readonly #provider: string
  readonly #writer = new PartsWriter()
  /** The open blocks by the upstream's number; null = the client does not get the block. */
  readonly #open = new Map<number, { readonly index: number, signature: string } | null>()

  constructor(provider: string) {
    this.#provider = provider
  }

  isOpen(number: number): boolean {
    return this.#open.has(number)
  }

  /** @param part null = the content of the block is dropped */
  start(number: number, part: ResponsePart | null, out: EventOutput): void {
    // End the previous block: some servers send no end events, and give all blocks the same number.
    this.end(number, out)
    this.#open.set(number, part && { index: this.#writer.start(part, out), signature: '' })
  }

  /** @param signature a piece of the signature, because some servers send it in several pieces; null = none */
  add(number: number, text: string, signature: string | null, out: EventOutput): void {
    const open = this.#open.get(number)
    if (!open) return
    open.signature += signature ?? ''
    this.#writer.delta(open.index, text, out)
  }

  end(number: number, out: EventOutput): void {
    const open = this.#open.get(number)
    this.#open.delete(number)
    if (!open) return
    this.#writer.end(open.index, open.signature === '' ? null : { provider: this.#provider, value: open.signature }, out)
  }

  endAll(out: EventOutput): void {
    for (const number of this.#open.keys()) this.end(number, out)
  }
}
