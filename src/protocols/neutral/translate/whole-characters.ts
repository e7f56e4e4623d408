import { isObject } from '../../../base/is-object.ts'
import type { ResponseEvent } from '../response.ts'

const isFirstHalf = (unit: number): boolean => (unit & 0xfc00) === 0xd800

/**
 * Keeps the characters of a response whole: some servers split a character of two UTF-16 units between two deltas, or send only
 * half of the character. Rust's parser refuses the JSON of an event with a half, and Go's replaces both halves.
 */
export class WholeCharacters {
  /** The first half of a character at the end of the text so far, by index of the part. */
  readonly #halves = new Map<number, string>()

  next(event: ResponseEvent): ResponseEvent {
    if (event.type !== 'delta') return wellFormed(event)
    const { index } = event
    if (this.#halves.size === 0 && event.text.isWellFormed()) return event
    const text = (this.#halves.get(index) ?? '') + event.text
    this.#halves.delete(index)
    if (!isFirstHalf(text.charCodeAt(text.length - 1))) return { ...event, text: text.toWellFormed() }
    this.#halves.set(index, text.slice(-1))
    return { ...event, text: text.slice(0, -1).toWellFormed() }
  }
}

/** Replaces halves of characters in strings by U+FFFD. A value without halves is not copied. */
export function wellFormed<T extends object>(value: T): T {
  return hasHalves(value) ? copyWellFormed(value) : value
}

function hasHalves(value: object): boolean {
  return Object.values(value).some((member: unknown) =>
    typeof member === 'string' ? !member.isWellFormed() : isObject(member) && hasHalves(member))
}

function copyWellFormed<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).map(([name, member]: [string, unknown]) => [
    name, typeof member === 'string' ? member.toWellFormed() : isObject(member) ? copyWellFormed(member) : member,
  ])) as T
}
