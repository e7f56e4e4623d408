import { isMarked } from './capsule.ts'
import type { CapsuleReader } from './capsule.ts'
import { asText } from './json.ts'
import { valueFor } from './opaque.ts'
import { fittingToolId } from './tool-ids.ts'
import type { ToolIdRule } from './tool-ids.ts'

/** Replaces the capsules of a request that is not translated, for one upstream. */
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

  /** The request had a capsule. */
  get hasFound(): boolean {
    return this.#hasFound
  }

  /** The id of a tool call, without what it carries. A value that is no capsule stays as it is. */
  toolId(value: unknown, field: string): unknown {
    const text = asText(value) ?? ''
    if (!isMarked(text)) return value
    this.#hasFound = true
    return fittingToolId(this.#capsules.toolId(text, field), this.#toolIds)
  }

  /** An opaque value. @returns null = another provider made it, and this one must not get it */
  opaque(value: unknown, field: string): unknown {
    const capsule = this.#capsules.open('opaque_value', asText(value) ?? '', field)
    if (capsule === null) return value
    this.#hasFound = true
    return valueFor(capsule.opaque, this.#provider)
  }
}
