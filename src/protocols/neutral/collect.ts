import type { CollectedPart, NeutralError, NeutralResponse, ResponseEvent, ResponsePart, StopEvent, TokenUsage } from './response.ts'

interface OpenPart {
  readonly part: ResponsePart
  text: string
  opaque: CollectedPart['opaque']
}

/** Collects the events of a whole response. @returns the error, where the response is one */
export function collectResponse(events: readonly ResponseEvent[]): NeutralResponse | NeutralError {
  const parts: OpenPart[] = []
  let id: string | null = null
  let model: string | null = null
  let stop: StopEvent | null = null
  let usage: TokenUsage | null = null
  for (const event of events) {
    switch (event.type) {
      case 'start':
        id = event.id
        model = event.model
        usage = event.usage
        break
      case 'part_start':
        parts[event.index] = { part: event.part, text: '', opaque: null }
        break
      case 'delta': {
        const part = parts[event.index]
        if (part) part.text += event.text
        break
      }
      case 'part_end': {
        const part = parts[event.index]
        if (part) part.opaque = event.opaque
        break
      }
      case 'stop':
        stop = event
        break
      case 'usage':
        usage = event.usage
        break
      case 'error':
        return event.error
    }
  }
  return { id, model, parts, stop, usage }
}
