import { unseal } from './capsule.ts'
import { asText } from './json.ts'
import { valueFor } from './opaque.ts'
import { fittingToolId } from './tool-ids.ts'
import type { ToolIdRule } from './tool-ids.ts'

/** Replaces the capsules of a request that is not translated, for one upstream. */
export class CapsuleRestorer {
  readonly #provider: string
  readonly #toolIds: ToolIdRule
  #hasFound = false

  /** @param provider tag of the upstream, see `providerTag` */
  constructor(provider: string, toolIds: ToolIdRule) {
    this.#provider = provider
    this.#toolIds = toolIds
  }

  /** The request had a capsule. */
  get hasFound(): boolean {
    return this.#hasFound
  }

  /** The id of a tool call, without what it carries. A value that holds no capsule stays as it is. */
  toolId(value: unknown): unknown {
    const capsule = unseal(asText(value) ?? '')
    if (capsule === null) return value
    this.#hasFound = true
    return capsule.id === null ? value : fittingToolId(capsule.id, this.#toolIds)
  }

  /** An opaque value. @returns null = another provider made it, and this one must not get it */
  opaque(value: unknown): unknown {
    const capsule = unseal(asText(value) ?? '')
    if (capsule === null) return value
    this.#hasFound = true
    return valueFor(capsule.opaque, this.#provider)
  }
}
