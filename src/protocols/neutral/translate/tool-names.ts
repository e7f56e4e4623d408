import { createHash } from 'node:crypto'
import type { Message, NeutralRequest, Part, ToolChoice } from '../request.ts'
import type { ResponseEvent } from '../response.ts'

/** The names of tools that a target accepts. */
export interface ToolNameRule {
  /** Characters. */
  readonly length: number
  /** One character, as a regular expression: `[A-Za-z0-9_-]`. */
  readonly pattern: string
  /** A pattern for the first character, if it has another rule; absent = `pattern`. */
  readonly start?: string
}

/** Characters of a hash that distinguishes tools whose names begin alike. */
const HASH_LENGTH = 8

/**
 * The names of a request's tools at a target that accepts fewer characters than the client's protocol. A name that
 * does not fit is cut and gets a hash of the whole name, so that the same name always gives the same result.
 */
export class ToolNames {
  readonly #rule: ToolNameRule
  readonly #refused: RegExp
  /** The target's names by the client's, and the other way round. Names that fit are in neither. */
  readonly #written = new Map<string, string>()
  readonly #original = new Map<string, string>()

  constructor(rule: ToolNameRule) {
    this.#rule = rule
    this.#refused = new RegExp(`(?!${rule.pattern}).`, 'gsu')
  }

  /** The request with names that the target accepts: in the tools, the tool choice and the conversation. */
  rename(request: NeutralRequest): NeutralRequest {
    for (const { name } of request.tools) this.#fit(name)
    const isCall = ({ type }: Part): boolean => type === 'tool_call' || type === 'tool_result'
    for (const { parts } of request.messages) for (const part of parts) if (isCall(part)) this.#fit((part as { name: string }).name)
    if (this.#written.size === 0) return request
    return {
      ...request,
      tools: request.tools.map(tool => ({ ...tool, name: this.#nameOf(tool.name) })),
      toolChoice: request.toolChoice && this.#choice(request.toolChoice),
      messages: request.messages.map(message => this.#message(message)),
    }
  }

  /** The event with the client's name of the tool. */
  restore(event: ResponseEvent): ResponseEvent {
    if (this.#original.size === 0 || event.type !== 'part_start' || event.part.type !== 'tool_call') return event
    const name = this.#original.get(event.part.name)
    return name === undefined ? event : { ...event, part: { ...event.part, name } }
  }

  #fit(name: string): void {
    if (name === '' || this.#written.has(name)) return
    const { length, pattern } = this.#rule
    const { start = pattern } = this.#rule
    const fitted = name.replace(this.#refused, '_')
    const plain = new RegExp(`^${start}`, 'su').test(fitted) ? fitted : `_${fitted}`
    if (plain === name && name.length <= length) return
    const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH)
    const fitting = `${plain.slice(0, length - HASH_LENGTH - 1)}_${hash}`
    this.#written.set(name, fitting)
    this.#original.set(fitting, name)
  }

  #nameOf(name: string): string {
    return this.#written.get(name) ?? name
  }

  #choice(choice: ToolChoice): ToolChoice {
    return choice.type === 'tools' ? { ...choice, names: choice.names.map(name => this.#nameOf(name)) } : choice
  }

  #message(message: Message): Message {
    const parts = message.parts.map(part =>
      (part.type === 'tool_call' || part.type === 'tool_result') ? { ...part, name: this.#nameOf(part.name) } : part)
    return { ...message, parts }
  }
}
