import { isMarked, type CapsuleReader } from './capsule.ts'
import { asText } from './json.ts'
import { valueFor } from './opaque.ts'
import { fittingToolId, type ToolIdRule } from './tool-ids.ts'

/** Replaces the capsules in an untranslated request by the values that the upstream may get. */
export class CapsuleRestorer {
  readonly #provider: string
  readonly #toolIds: ToolIdRule
  readonly #capsules: CapsuleReader
  #hasFound = false

  /** @param provider the upstream's tag from `providerTag` */
  constructor(provider: string, toolIds: ToolIdRule, capsules: CapsuleReader) {
    this.#provider = provider
    this.#toolIds = toolIds
    this.#capsules = capsules
  }

  get hasFound(): boolean {
    return this.#hasFound
  }

  /** @returns the id inside a capsule; a value that is no capsule is returned unchanged */
  toolId(value: unknown, field: string): unknown {
    const text = asText(value) ?? ''
    if (!isMarked(text)) return value
    this.#hasFound = true
    return fittingToolId(this.#capsules.toolId(text, field), this.#toolIds)
  }

  /** @returns the opaque value inside a capsule; null = another provider made it. A value that is no capsule is returned unchanged */
  opaque(value: unknown, field: string): unknown {
    const capsule = this.#capsules.open('opaque_value', asText(value) ?? '', field)
    if (capsule === null) return value
    this.#hasFound = true
    return valueFor(capsule.opaque, this.#provider)
  }
}
