import { randomUUID } from 'node:crypto'

/**
 * Marks in an event that is rendered once and filled often. TEXT is replaced
 * anywhere, also inside a JSON string; NUMBER is replaced with its quotes. They are
 * random, so that no client can send them.
 */
export const TEXT: string = randomUUID()
export const NUMBER: string = randomUUID()

const PLACEHOLDER = new RegExp(`${TEXT}|"${NUMBER}"`)

/** A server-sent event with JSON data, and with an `event:` line when it has a name. */
export function event(data: unknown, name?: string): string {
  const line = `data: ${JSON.stringify(data)}\n\n`
  return name === undefined ? line : `event: ${name}\n${line}`
}

/**
 * A function that replaces the marks of the text by its arguments, in order. An
 * argument must not need a JSON escape: words and numbers do not.
 */
export function template(text: string): (...values: (string | number)[]) => string {
  const [head = '', ...tails] = text.split(PLACEHOLDER)
  return (...values) => {
    let filled = head
    for (let i = 0; i < tails.length; i++) filled += String(values[i]) + tails[i]!
    return filled
  }
}
