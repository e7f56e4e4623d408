import { countTokens as countWithVocabulary, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base'

// Runs of characters that are longer than any word. The tokenizer takes quadratic time for a run, which would be hours for a megabyte.
const LONG_RUN = /[\p{L}\p{M}]{256}|[^\s\p{L}\p{M}\p{N}]{256}|\s{256}/gu
const MERGES_REMEMBERED = 20_000
// Count control tokens as text, because a prompt can quote them.
const PLAIN = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }

/**
 * @returns a function that counts tokens of OpenAI's vocabulary o200k_base. The count is exact for OpenAI's models since GPT-4o, and an
 * approximation for other models. Longer runs are counted in pieces of 256 characters, with at most one token too many for each piece.
 */
export function tokenCount(): (text: string) => number {
  setMergeCacheSize(MERGES_REMEMBERED)
  return text => {
    let tokens = 0
    let from = 0
    for (const { 0: run, index } of text.matchAll(LONG_RUN)) {
      const to = index + run.length
      tokens += countWithVocabulary(text.slice(from, to), PLAIN)
      from = to
    }
    return from === text.length ? tokens : tokens + countWithVocabulary(text.slice(from), PLAIN)
  }
}
