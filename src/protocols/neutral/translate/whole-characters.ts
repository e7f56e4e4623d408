import { isObject } from '../../../base/is-object.ts'
import type { ResponseEvent } from '../response.ts'

const isFirstHalf = (unit: number): boolean => (unit & 0xfc00) === 0xd800

/**
 * Joins the halves of characters in a response. Some servers split a character of two UTF-16 units between two deltas, or send only one of
 * the units. In JSON with such a half, Rust's parser refuses the event, and Go's parser replaces the half.
 */
export class WholeCharacters {
  /** The first half of a character, if a part's text so far ends with one; by index of the part. */
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

/** Replaces halves of characters in strings by U+FFFD. A value without halves is returned without a copy. */
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
