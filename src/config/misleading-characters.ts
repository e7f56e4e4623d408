import type { Findings } from './findings.ts'
import type { SourceText } from './source-text.ts'

/**
 * Copied from a page or a chat, lines may have spaces that are letters to YAML, or letters that nobody sees,
 * where they begin, behind a dash, or on either side of a colon: that explains the rest.
 */
const MISLEADING_ANYWHERE =
  /[\u00a0\u1680\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff](?:(?<=^[ -]*(?:[\w."'-]+:)? *.)|(?=:\s))/m
/** Behind a value or in it they may be meant, unless something is wrong with just that line. */
const NON_ASCII_SPACE = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000](?:(?<=:.)|(?=\s{0,9}(?:["',}\]#]|$)))/
const INVISIBLE = /[\u200b-\u200d\u2060\ufeff]/
const MISLEADING_IN_LINE = new RegExp(`${INVISIBLE.source}|${NON_ASCII_SPACE.source}`)

/** Adds which characters, that look like spaces or like nothing, are behind what was found. */
export function reportMisleadingCharacters(findings: Findings, source: SourceText): void {
  const everywhere = MISLEADING_ANYWHERE.exec(source.text)
  if (everywhere) reportCharacter(findings, everywhere[0], everywhere.index)
  for (const { line } of findings.problems()) {
    const odd = line === null ? null : MISLEADING_IN_LINE.exec(source.line(line))
    if (odd && line !== null) reportCharacter(findings, odd[0], source.lineRange(line).start + odd.index)
  }
}

function reportCharacter(findings: Findings, character: string, offset: number): void {
  const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')
  const trouble = INVISIBLE.test(character)
    ? 'cannot be seen; remove it'
    : 'looks like a space and is none; put plain spaces'
  findings.errorAt(offset, `the character U+${code} ${trouble}`)
}
