import { readFileSync } from 'node:fs'
import { SCHEMA_FILE } from './json-schema.ts'
import { splitReferences } from './references.ts'
import { NOT_A_SECRET, SEPARATORS, looksRandom, maskUrls } from './secrets.ts'

export const MASK = '***'
/** What no word of a text has in it. */
const WORD = /[^\s,;(){}[\]"'`<>]+/g

/** Masks words of comments that may be secrets. */
export class CommentWords {
  /** What the descriptions of the configuration's keys are written with, in lower case. */
  readonly #vocabulary = new Set(readFileSync(SCHEMA_FILE, 'utf8').toLowerCase().match(/\p{L}+/gu))

  /** Beside a credential every word that the descriptions of the configuration do not have; elsewhere what looks random. */
  mask(comment: string, isBesideCredential: boolean): string {
    const isSecret = isBesideCredential
      ? (word: string) => !this.#isKnown(word)
      : looksRandom
    return splitReferences(maskUrls(comment, MASK)).map(piece => {
      if (piece.kind === 'reference') return piece.fallback === null ? piece.raw : `\${${piece.name}:-${MASK}}`
      return piece.raw.replace(WORD, word => (isSecret(word) ? maskWord(word) : word))
    }).join('')
  }

  #isKnown(word: string): boolean {
    return NOT_A_SECRET.test(word) || word.split(SEPARATORS).every(part => part === '' || /^\d{1,4}$/.test(part) || this.#vocabulary.has(part.toLowerCase()))
  }
}

/** The end of a sentence, or of a key, stays. */
function maskWord(word: string): string {
  return MASK + (/[.:?!]$/.exec(word)?.[0] ?? '')
}
