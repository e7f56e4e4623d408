/** The rule of thumb for all tokenizers: English and code lie near 4, other scripts below. */
export const BYTES_PER_TOKEN = 4

/** Tokens of so many bytes of text, roughly. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN)
}
