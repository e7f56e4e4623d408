import { createHash } from 'node:crypto'
import type { Accepts } from '../accepts.ts'
import type { Message, NeutralRequest, ToolChoice } from '../request.ts'
import type { ResponseEvent } from '../response.ts'

type ToolNameRule = NonNullable<Accepts['toolName']>

/** Characters of a hash. They are enough to distinguish tools whose names begin with the same text. */
const HASH_LENGTH = 8

/**
 * Renames a request's tools for a target that refuses some names that the client's protocol allows. A name that does not fit is cut, and
 * gets a hash of the whole name, so that the same name always gives the same result.
 */
export class ToolNames {
  readonly #rule: ToolNameRule
  readonly #refused: RegExp
  /** The target's names by the client's names, and the client's names by the target's. Names that fit are not included. */
  readonly #written = new Map<string, string>()
  readonly #original = new Map<string, string>()

  constructor(rule: ToolNameRule) {
    this.#rule = rule
    this.#refused = new RegExp(`(?!${rule.pattern}).`, 'gsu')
  }

  /** Renames the tools in the list of tools, the tool choice and the conversation. */
  rename(request: NeutralRequest): NeutralRequest {
    for (const { name } of request.tools) this.#fit(name)
    for (const { parts } of request.messages) {
      for (const part of parts) if (part.type === 'tool_call' || part.type === 'tool_result') this.#fit(part.name)
    }
    if (this.#written.size === 0) return request
    return {
      ...request,
      tools: request.tools.map(tool => ({ ...tool, name: this.#nameOf(tool.name) })),
      toolChoice: request.toolChoice && this.#choice(request.toolChoice),
      messages: request.messages.map(message => this.#message(message)),
    }
  }

  /** Replaces the target's name of a tool in a call by the client's name. */
  restore(event: ResponseEvent): ResponseEvent {
    if (this.#original.size === 0 || event.type !== 'part_start' || event.part.type !== 'tool_call') return event
    const name = this.#original.get(event.part.name)
    return name === undefined ? event : { ...event, part: { ...event.part, name } }
  }

  #fit(name: string): void {
    if (name === '' || this.#written.has(name)) return
    const { length, pattern, start = pattern } = this.#rule
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
