import { maskBody } from '../../proxy/secret-mask.ts'

/** Bytes of an upstream's error that the ledger keeps. */
const MAX_BYTES = 1024
/** Those that text has no use for; a line break and a tab stay. */
const CONTROL_CHARACTERS = /(?![\n\t])\p{Cc}/gu
/** What a cut leaves of a character. */
const CUT_CHARACTER = /\ufffd+$/

/**
 * The beginning of an upstream's error, for the operator.
 *
 * @param body decompressed
 * @param secrets of the credential that was sent: they are masked
 * @returns 1024 bytes at most; null = it says nothing
 */
export function errorText(body: Buffer, secrets: readonly string[]): string | null {
  // The mask first: a cut could leave the beginning of a secret.
  const masked = maskBody(body, null, secrets) ?? body
  const text = masked.toString('utf8', 0, MAX_BYTES).replace(CONTROL_CHARACTERS, ' ')
  return (masked.length > MAX_BYTES ? text.replace(CUT_CHARACTER, '') : text).trim() || null
}
