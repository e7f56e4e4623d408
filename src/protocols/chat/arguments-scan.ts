const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Detects when JSON text that arrives in pieces is a complete object or list. Each character is read once. */
export class ArgumentsScan {
  /** The value is complete. */
  isWhole = false
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** The text began with something other than an object or list. */
  #isOther = false

  add(text: string): void {
    for (let i = 0; i < text.length && !this.isWhole && !this.#isOther; i++) this.#character(text.charCodeAt(i))
  }

  #character(code: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (code === BACKSLASH) this.#isEscaped = true
      else if (code === QUOTE) this.#isInString = false
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      this.#depth++
    } else if (this.#depth === 0) {
      this.#isOther = code > 0x20
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      this.isWhole = --this.#depth === 0
    } else {
      this.#isInString = code === QUOTE
    }
  }
}
