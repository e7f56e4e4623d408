import { createHash } from 'node:crypto'

/** A signature or encrypted reasoning. Only the provider that made it can read it, and only that provider gets it back. */
export interface OpaqueValue {
  /** From `providerTag`; null = unknown: the value was in a field of the client's protocol, without a capsule. */
  readonly provider: string | null
  readonly value: string
}

/** Enough to distinguish the providers of one configuration. */
const TAG_BYTES = 6

/** A tag that does not reveal the provider's name to the client. Accounts at the same host can read each other's values. */
export function providerTag(protocol: string, host: string): string {
  return createHash('sha256').update(`${protocol}\n${host}`).digest().toString('base64url', 0, TAG_BYTES)
}

/** null = another provider made the value, so the target must not get it. */
export function valueFor(opaque: OpaqueValue | null, provider: string): string | null {
  return opaque !== null && opaque.provider === provider ? opaque.value : null
}
