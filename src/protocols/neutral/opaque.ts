import { createHash } from 'node:crypto'

/**
 * A value that only the provider that made it can read: a signature of thinking, encrypted reasoning, a thought
 * signature of a tool call. It is sent back only to that provider.
 */
export interface OpaqueValue {
  /** From `providerTag`; null = made by the client's own protocol, without a gateway's mark. */
  readonly provider: string | null
  readonly value: string
}

/** Bytes of a tag: enough to distinguish the providers of one configuration. */
const TAG_BYTES = 6

/**
 * A tag for a provider that does not reveal its name to the client.
 *
 * @param protocol of the upstream
 * @param host of its URL: accounts at the same provider can read each other's values
 */
export function providerTag(protocol: string, host: string): string {
  return createHash('sha256').update(`${protocol}\n${host}`).digest().toString('base64url', 0, TAG_BYTES)
}

/** The value, if the target made it; null = it must not be sent there. */
export function valueFor(opaque: OpaqueValue | null, provider: string): string | null {
  return opaque !== null && opaque.provider === provider ? opaque.value : null
}
