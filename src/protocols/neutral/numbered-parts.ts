import { PartsWriter } from './parts-writer.ts'
import type { EventOutput, ResponsePart } from './response.ts'

/** For protocols that number the blocks of a response. The signature of a block is reported at the end of the block. */
export class NumberedParts {
  readonly #provider: string
  readonly #writer = new PartsWriter()
  /** By the upstream's number; null = not for the client. */
  readonly #open = new Map<number, { readonly index: number, signature: string } | null>()

  constructor(provider: string) {
    this.#provider = provider
  }

  isOpen(number: number): boolean {
    return this.#open.has(number)
  }

  /** @param part null = the content of the block is dropped */
  start(number: number, part: ResponsePart | null, out: EventOutput): void {
    // Some servers send no end events and give all blocks the same number.
    this.end(number, out)
    this.#open.set(number, part && { index: this.#writer.start(part, out), signature: '' })
  }

  /** @param signature a piece: some servers send a signature in several; null = none */
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
