import { readFileSync } from 'node:fs'
import { SCHEMA_FILE } from '../json-schema.ts'
import { splitReferences } from './references.ts'
import { NOT_A_SECRET, SEPARATORS, looksRandom, maskUrls } from './secrets.ts'

export const MASK = '***'
/** Matches a word: all characters except those that cannot be a part of a word. */
const WORD = /[^\s,;(){}[\]"'`<>]+/g

export class CommentWords {
  /** The words in the descriptions of configuration keys, in lower case. */
  readonly #vocabulary = new Set(readFileSync(SCHEMA_FILE, 'utf8').toLowerCase().match(/\p{L}+/gu))

  /**
   * Masks words of a comment. Next to a credential, every word is masked that is not in the descriptions; elsewhere, only words that look
   * random.
   */
  mask(comment: string, isBesideCredential: boolean): string {
    const isSecret = isBesideCredential ? (word: string) => !this.#isKnown(word) : looksRandom
    return splitReferences(maskUrls(comment, MASK)).map(piece => {
      if (piece.kind === 'reference') return piece.fallback === null ? piece.raw : `\${${piece.name}:-${MASK}}`
      return piece.raw.replace(WORD, word => (isSecret(word) ? maskWord(word) : word))
    }).join('')
  }

  #isKnown(word: string): boolean {
    return NOT_A_SECRET.test(word) || word.split(SEPARATORS).every(part => part === '' || /^\d{1,4}$/.test(part) || this.#vocabulary.has(part.toLowerCase()))
  }
}

function maskWord(word: string): string {
  return MASK + (/[.:?!]$/.exec(word)?.[0] ?? '')
}
