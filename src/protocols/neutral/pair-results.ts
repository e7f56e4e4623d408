import type { Message, Part, ToolResultPart } from './request.ts'

/**
 * Moves tool results directly behind their calls, for protocols that require this order. Clients may put other items between a call and its
 * result, even further calls, and may reorder results. A result without a call stays in its place.
 */
export function pairResults(messages: readonly Message[]): readonly Message[] {
  const results = resultsOfCalls(messages)
  if (results.size === 0) return messages
  const taken = new Set<Part>([...results.values()].flat())
  const paired: Message[] = []
  /** The message with the results of the last calls. User content of messages with results is added to this message. */
  let behind: { readonly at: number, readonly parts: Part[] } | null = null
  for (const message of messages) {
    const own = results.get(message)
    if (own !== undefined) {
      behind = { at: paired.length + 1, parts: [...own] }
      paired.push(message, { role: 'user', parts: behind.parts, name: null })
      continue
    }
    const left = message.parts.filter(part => !taken.has(part))
    const hadResults = left.length < message.parts.length
    if (hadResults && left.length === 0) continue
    if (hadResults && behind?.at === paired.length - 1) for (const part of left) behind.parts.push(part)
    else paired.push(hadResults ? { ...message, parts: left } : message)
  }
  return paired
}

/** The results of the calls in each message. If several results have the same id, the calls with that id get them in order. */
function resultsOfCalls(messages: readonly Message[]): ReadonlyMap<Message, readonly ToolResultPart[]> {
  const byId = new Map<string, { readonly list: ToolResultPart[], next: number }>()
  const places = new Map<ToolResultPart, number>()
  for (const part of messages.flatMap(({ parts }) => parts)) {
    if (part.type !== 'tool_result') continue
    places.set(part, places.size)
    const queue = byId.get(part.callId)
    if (queue === undefined) byId.set(part.callId, { list: [part], next: 0 })
    else queue.list.push(part)
  }
  const results = new Map<Message, readonly ToolResultPart[]>()
  if (byId.size === 0) return results
  for (const message of messages) {
    const own = message.parts.flatMap(part => {
      const queue = part.type === 'tool_call' ? byId.get(part.id) : undefined
      const result = queue?.list[queue.next++]
      return result === undefined ? [] : [result]
    })
    if (own.length > 0) results.set(message, own.toSorted((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0)))
  }
  return results
}
