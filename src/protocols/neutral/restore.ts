import { isMarked, type CapsuleReader } from './capsule.ts'
import { asText } from './json.ts'
import { valueFor } from './opaque.ts'
import { fittingToolId, type ToolIdRule } from './tool-ids.ts'

/** Replaces the capsules in an untranslated request by what the upstream may get. */
export class CapsuleRestorer {
  readonly #provider: string
  readonly #toolIds: ToolIdRule
  readonly #capsules: CapsuleReader
  #hasFound = false

  /** @param provider tag of the upstream, see `providerTag` */
  constructor(provider: string, toolIds: ToolIdRule, capsules: CapsuleReader) {
    this.#provider = provider
    this.#toolIds = toolIds
    this.#capsules = capsules
  }

  get hasFound(): boolean {
    return this.#hasFound
  }

  /** The id inside a capsule; other values are returned unchanged. */
  toolId(value: unknown, field: string): unknown {
    const text = asText(value) ?? ''
    if (!isMarked(text)) return value
    this.#hasFound = true
    return fittingToolId(this.#capsules.toolId(text, field), this.#toolIds)
  }

  /** The opaque value inside a capsule; null = another provider made it. Other values are returned unchanged. */
  opaque(value: unknown, field: string): unknown {
    const capsule = this.#capsules.open('opaque_value', asText(value) ?? '', field)
    if (capsule === null) return value
    this.#hasFound = true
    return valueFor(capsule.opaque, this.#provider)
  }
}
