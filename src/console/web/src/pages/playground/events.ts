export interface ServerEvent {
  /** The value of the line `event:`; null = the event has no such line. */
  readonly name: string | null
  readonly data: string
}

/** Parses a stream of server-sent events that arrives in pieces. Source: HTML Living Standard, "Interpreting an event stream". */
export class EventReader {
  #rest = ''
  #name: string | null = null
  #data: string[] = []

  /** @returns the events that end in this piece */
  push(piece: string): ServerEvent[] {
    const text = this.#rest + piece
    // A CR at the end of the piece may be the first half of CR LF.
    const end = text.endsWith('\r') ? text.length - 1 : text.length
    const lines = text.slice(0, end).split(/\r\n|\r|\n/)
    this.#rest = (lines.pop() ?? '') + text.slice(end)
    const events: ServerEvent[] = []
    for (const line of lines) {
      if (line === '') this.#finish(events)
      else this.#read(line)
    }
    return events
  }

  #read(line: string): void {
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#data.push(value)
    if (field === 'event') this.#name = value
  }

  #finish(events: ServerEvent[]): void {
    if (this.#data.length > 0) events.push({ name: this.#name, data: this.#data.join('\n') })
    this.#name = null
    this.#data = []
  }
}
