import { isObject } from '../../base/is-object.ts'

/** What a response of any protocol says about itself. */
export interface ResponseFacts {
  id: string | null
  model: string | null
  readonly finishReasons: string[]
}

const MAX_LENGTH = 256
const MAX_REASONS = 16

/** Collects the facts from a whole body, or from the events of a stream. */
export class ResponseFactsReader implements ResponseFacts {
  id: string | null = null
  model: string | null = null
  readonly finishReasons: string[] = []

  /** @param value a parsed body or event */
  read(value: unknown): void {
    if (!isObject(value)) return
    for (const part of [value, value.message, value.response, value.delta]) {
      if (!isObject(part)) continue
      this.id ??= name(part.id) ?? name(part.responseId)
      this.model ??= name(part.model) ?? name(part.modelVersion)
      this.#addReason(part.stop_reason)
      this.#addReason(part.stopReason)
    }
    if (isObject(value.response)) this.#addReason(endStatus(value.response))
    if (value.object === 'response') this.#addReason(endStatus(value))
    for (const choice of [value.choices, value.candidates].flat()) {
      if (!isObject(choice)) continue
      this.#addReason(choice.finish_reason)
      this.#addReason(choice.finishReason)
    }
  }

  #addReason(value: unknown): void {
    const reason = name(value)
    if (reason !== null && this.finishReasons.length < MAX_REASONS) this.finishReasons.push(reason)
  }
}

/** Tells whether the event may contain a finish reason. All other facts are in the first events of a stream. */
export function mayHaveFinishReason(data: Buffer): boolean {
  return data.includes('finish') || data.includes('stop_reason') || data.includes('stopReason') || data.includes('"status"')
}

function endStatus({ status }: Readonly<Record<string, unknown>>): unknown {
  return status === 'in_progress' || status === 'queued' ? null : status
}

function name(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= MAX_LENGTH ? value : null
}
