/**
 * Removes from the beginning of a text, which arrives in parts, what the client already has: trailing white space
 * that was not sent to the upstream, and that the upstream may repeat.
 */
export class PrefixStripper {
  #prefix: string

  constructor(has: string) {
    this.#prefix = has
  }

  /** @returns the new text of the part */
  strip(part: string): string {
    let same = 0
    while (same < part.length && same < this.#prefix.length && part[same] === this.#prefix[same]) same++
    // After the first difference, everything is new.
    this.#prefix = same === part.length ? this.#prefix.slice(same) : ''
    return part.slice(same)
  }
}
