/** Bytes per token, as a rule of thumb for all tokenizers: English and code have about 4; other scripts have fewer. */
export const BYTES_PER_TOKEN = 4

export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN)
}
