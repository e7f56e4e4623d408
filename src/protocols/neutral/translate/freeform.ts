import { asText, parseObject } from '../json.ts'
import type { NeutralRequest, Part, Tool } from '../request.ts'
import type { ResponseEvent } from '../response.ts'

/** The name of the argument that contains the text. */
const INPUT = 'input'

/**
 * Converts tools that take plain text, and their calls, to tools with one JSON argument for the text. For upstreams whose tools accept only
 * JSON.
 */
export function wrapFreeform(request: NeutralRequest): NeutralRequest {
  if (!hasFreeform(request)) return request
  const messages = request.messages.map(message => ({ ...message, parts: message.parts.map(wrapPart) }))
  return { ...request, tools: request.tools.map(wrapTool), messages }
}

function hasFreeform({ tools, messages }: NeutralRequest): boolean {
  return tools.some(({ freeform }) => freeform !== null)
    || messages.some(({ parts }) => parts.some(part => (part.type === 'tool_call' || part.type === 'tool_result') && part.isFreeform))
}

function wrapTool(tool: Tool): Tool {
  if (tool.freeform === null) return tool
  const { format } = tool.freeform
  const grammar = format === null || format['type'] === 'text' ? null : JSON.stringify(format)
  const description = [tool.description, grammar && `The input must match this grammar: ${grammar}`].filter(text => text).join('\n\n')
  const parameters = { type: 'object', properties: { [INPUT]: { type: 'string' } }, required: [INPUT], additionalProperties: false }
  return { ...tool, freeform: null, description: description === '' ? null : description, parameters }
}

function wrapPart(part: Part): Part {
  if (part.type === 'tool_call' && part.isFreeform) return { ...part, isFreeform: false, arguments: JSON.stringify({ [INPUT]: part.arguments }) }
  return part.type === 'tool_result' && part.isFreeform ? { ...part, isFreeform: false } : part
}

/** Converts the calls in a response back to plain text: the reverse of `wrapFreeform`. */
export class FreeformUnwrapper {
  readonly #names: ReadonlySet<string>
  /** Arguments received so far, by the index of the part. */
  readonly #open = new Map<number, string>()

  constructor({ tools }: NeutralRequest) {
    this.#names = new Set(tools.filter(({ freeform }) => freeform !== null).map(({ name }) => name))
  }

  /** @returns the events that the client gets in place of this event */
  next(event: ResponseEvent): readonly ResponseEvent[] {
    if (this.#names.size === 0) return [event]
    switch (event.type) {
      case 'part_start': {
        const { part } = event
        if (part.type !== 'tool_call' || part.isFreeform || !this.#names.has(part.name)) return [event]
        this.#open.set(event.index, '')
        return [{ ...event, part: { ...part, isFreeform: true } }]
      }
      case 'delta': {
        const text = this.#open.get(event.index)
        if (text === undefined) return [event]
        this.#open.set(event.index, text + event.text)
        return []
      }
      case 'part_end': {
        const text = this.#open.get(event.index)
        if (text === undefined) return [event]
        this.#open.delete(event.index)
        return [{ type: 'delta', index: event.index, text: asText(parseObject(text)?.[INPUT]) ?? text }, event]
      }
      default:
        return [event]
    }
  }
}
