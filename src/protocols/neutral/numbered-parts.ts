import { PartsWriter } from './parts-writer.ts'
import type { EventOutput, ResponsePart } from './response.ts'

interface OpenPart {
  readonly index: number
  signature: string
}

/** The parts of a response whose blocks the upstream numbers. The signature of a block is reported when it ends. */
export class NumberedParts {
  readonly #provider: string
  readonly #writer = new PartsWriter()
  /** By the upstream's number; null = not for the client. */
  readonly #open = new Map<number, OpenPart | null>()

  constructor(provider: string) {
    this.#provider = provider
  }

  isOpen(number: number): boolean {
    return this.#open.has(number)
  }

  /** @param part null = not for the client: its content is dropped */
  start(number: number, part: ResponsePart | null, out: EventOutput): void {
    // A server that numbers all blocks alike leaves out their ends.
    this.end(number, out)
    this.#open.set(number, part && { index: this.#writer.start(part, out), signature: '' })
  }

  /** @param signature one piece of it, because some servers send several; null = none */
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
