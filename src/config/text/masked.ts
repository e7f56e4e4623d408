import { CommentWords, MASK } from './comment-words.ts'
import { parseYaml } from './document.ts'
import { readSchema } from '../json-schema.ts'
import { CREDENTIAL_NAME, secretPlaces, unknownWords } from './secrets.ts'
import { SourceText, maskSecret, type Range } from './source-text.ts'

/** The same length as in `gateway keys list`. */
const DIGEST_PREFIX_LENGTH = 8
const DIGEST = /\b[\da-f]{64}\b/gi
const ALIAS = /^\*\S+$/
const SCHEMA = readSchema()

/**
 * The text for reading, with the same lines and comments. Literal secrets are masked; references to the environment are shown. If the text
 * is not YAML, every word is masked that is not in the schema.
 */
export function maskedText(text: string): string {
  const source = new SourceText(text)
  const { root, isInvalid } = parseYaml(source, {})
  const { values, comments } = isInvalid ? { values: unknownWords(source, SCHEMA), comments: [] } : secretPlaces(source, root, SCHEMA)
  const ranges = [
    ...values.map(range => ({ ...range, mask: (piece: string) => maskedValue(piece, text) })),
    ...maskedComments(source, comments),
  ].sort((a, b) => a.start - b.start)
  let shown = ''
  let at = 0
  for (const { start, end, mask } of ranges) {
    // Skip a range that is inside the previous one: a credential in a URL of a comment is in both lists.
    if (end <= at) continue
    shown += withShortDigests(text.slice(at, start)) + mask(text.slice(start, end))
    at = end
  }
  return shown + withShortDigests(text.slice(at))
}

interface MaskedRange extends Range { mask(piece: string): string }

/** Groups comments into blocks. Adjacent lines with only a comment are one block, together with the lines above and below. */
function maskedComments(source: SourceText, comments: readonly Range[]): MaskedRange[] {
  const words = new CommentWords()
  const linesOf = (first: number, last: number): string => source.text.slice(source.lineRange(first).start, source.lineRange(last).end)
  const blocks: { first: number, last: number, readonly ranges: Range[] }[] = []
  for (const range of comments) {
    const { line } = source.position(range.start)
    const isAlone = source.text.slice(source.lineRange(line).start, range.start).trim() === '#'
    const before = blocks.at(-1)
    if (before?.last !== line || !isAlone) blocks.push({ first: isAlone ? Math.max(1, line - 1) : line, last: line, ranges: [] })
    const block = blocks.at(-1)!
    block.ranges.push(range)
    if (isAlone) block.last = Math.min(line + 1, source.lineCount)
  }
  return blocks.flatMap(({ first, last, ranges }) => {
    const isBesideCredential = CREDENTIAL_NAME.test(linesOf(first, last))
    return ranges.map(range => ({ ...range, mask: (piece: string) => words.mask(piece, isBesideCredential) }))
  })
}

/** Masks each line separately, so that later lines keep their numbers. */
function maskedValue(piece: string, text: string): string {
  if (ALIAS.test(piece) && text.includes(`&${piece.slice(1)}`)) return piece
  return maskSecret(piece).map(({ raw, mask }) => (raw.includes('\n') ? raw.replace(/\S.*\S|\S/g, MASK) : mask)).join('')
}

/** Shortens digests. The rest is enough to distinguish two keys. */
function withShortDigests(text: string): string {
  return text.replace(DIGEST, digest => `${digest.slice(0, DIGEST_PREFIX_LENGTH)}…`)
}
