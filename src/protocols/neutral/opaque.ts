import { createHash } from 'node:crypto'

/**
 * A value that only the provider that made it can read: a signature of thinking, encrypted reasoning, a thought
 * signature of a tool call. It goes back to that provider alone.
 */
export interface OpaqueValue {
  /** Of `providerTag`; null = the client's own protocol made it, and no gateway has marked it. */
  readonly provider: string | null
  readonly value: string
}

/** Bytes of a tag: enough to tell the providers of one configuration apart. */
const TAG_BYTES = 6

/**
 * Names a provider without telling the client which it is.
 *
 * @param protocol of the upstream
 * @param host of its URL: several accounts at one provider read each other's values
 */
export function providerTag(protocol: string, host: string): string {
  return createHash('sha256').update(`${protocol}\n${host}`).digest().toString('base64url', 0, TAG_BYTES)
}

/** The value, if the target made it; otherwise null, and it must not be sent there. */
export function valueFor(opaque: OpaqueValue | null, provider: string): string | null {
  return opaque !== null && opaque.provider === provider ? opaque.value : null
}
