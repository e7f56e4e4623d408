/**
 * Takes off the beginning of a text, which comes in parts, what the client has
 * already: white space that was left out of what the upstream was shown, and that
 * it may say again.
 */
export class PrefixStripper {
  #prefix: string

  constructor(has: string) {
    this.#prefix = has
  }

  /** @returns what is new of the part */
  strip(part: string): string {
    let same = 0
    while (same < part.length && same < this.#prefix.length && part[same] === this.#prefix[same]) same++
    // After the first difference all of it is new.
    this.#prefix = same === part.length ? this.#prefix.slice(same) : ''
    return part.slice(same)
  }
}
