import { randomUUID } from 'node:crypto'

/**
 * Placeholders in an event that is rendered once and filled often. `TEXT` is replaced anywhere, even inside a JSON string. `NUMBER` is
 * replaced together with its quotes. They are random, so that no client can send them.
 */
export const TEXT: string = randomUUID()
export const NUMBER: string = randomUUID()

const PLACEHOLDER = new RegExp(`${TEXT}|"${NUMBER}"`)

/** A server-sent event with JSON data. An event with a name has an `event:` line. */
export function event(data: unknown, name?: string): string {
  const line = `data: ${JSON.stringify(data)}\n\n`
  return name === undefined ? line : `event: ${name}\n${line}`
}

/**
 * Creates a function that replaces the placeholders of the text by its arguments, in order. An argument must not need escapes in JSON:
 * words and numbers need none.
 */
export function template(text: string): (...values: (string | number)[]) => string {
  const [head = '', ...tails] = text.split(PLACEHOLDER)
  return (...values) => {
    let filled = head
    for (let i = 0; i < tails.length; i++) filled += String(values[i]) + tails[i]!
    return filled
  }
}
