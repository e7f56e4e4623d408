import { createHash } from 'node:crypto'

/** A signature or encrypted reasoning. Only the provider that made the value can read it, so the gateway sends it to no other provider. */
export interface OpaqueValue {
  /**
   * The provider's tag from `providerTag`; null = unknown, because the value came in a field of the client's protocol without a capsule.
   */
  readonly provider: string | null
  readonly value: string
}

/** Few bytes are enough, because a configuration has few providers. */
const TAG_BYTES = 6

/**
 * A tag for a provider that does not reveal its name to the client. All accounts at one host have the same tag: each can read the others'
 * values.
 */
export function providerTag(protocol: string, host: string): string {
  return createHash('sha256').update(`${protocol}\n${host}`).digest().toString('base64url', 0, TAG_BYTES)
}

/** The value for the target; null = another provider made the value, so the target must not get it. */
export function valueFor(opaque: OpaqueValue | null, provider: string): string | null {
  return opaque !== null && opaque.provider === provider ? opaque.value : null
}
