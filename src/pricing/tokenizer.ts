import { countTokens as countWithVocabulary, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base'

// No word is this long. The tokenizer takes quadratic time for such runs: a hostile megabyte would take hours.
const LONG_RUN = /[\p{L}\p{M}]{256}|[^\s\p{L}\p{M}\p{N}]{256}|\s{256}/gu
const MERGES_REMEMBERED = 20_000
// A prompt can quote control tokens: count them as text.
const PLAIN = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }

/**
 * Counts tokens of OpenAI's o200k_base vocabulary: exact for its models since GPT-4o, else an approximation. Each run of more than
 * 256 letters or signs is counted in pieces, at most one token too many each.
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
