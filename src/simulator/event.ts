import { randomUUID } from 'node:crypto'

/**
 * Marks in an event that is rendered once and filled often: TEXT is replaced as
 * it stands, inside a JSON string or not; NUMBER loses its quotes. They are
 * random so that nothing that a client sends can contain them.
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
 * A function that puts its arguments into the marks of the text, in the order in
 * which they stand. An argument must need no JSON escape: words and numbers do
 * not.
 */
export function template(text: string): (...values: (string | number)[]) => string {
  const [head = '', ...tails] = text.split(PLACEHOLDER)
  return (...values) => {
    let filled = head
    for (let i = 0; i < tails.length; i++) filled += String(values[i]) + tails[i]!
    return filled
  }
}
