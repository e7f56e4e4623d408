import { isCollection, isNode, isScalar, visit, type Document, type ErrorCode, type YAMLError } from 'yaml'
import type { SourceText } from './source-text.ts'

export interface Fault {
  readonly offset: number
  readonly message: string
  /** true if the fault is an environment variable that is not set: the file itself is valid. */
  readonly isUnset?: boolean
}

const QUOTE_HINT = 'put quotes round the value'
const TAB_MESSAGE = 'a tab cannot indent YAML; use spaces'
const NO_ENTRY = 'not of the form "name: value"; check the space after the colon or dash, ' +
  'quotes round a value with ": ", and the indentation of this line and the next'

/** Replaces messages of the library that quote the file, or that do not say what to change. */
const MESSAGES: Partial<Record<ErrorCode, string>> = {
  TAB_AS_INDENT: TAB_MESSAGE,
  BAD_INDENT: 'wrong indentation; line this up with its neighbours',
  BLOCK_AS_IMPLICIT_KEY: NO_ENTRY,
  MULTILINE_IMPLICIT_KEY: NO_ENTRY,
  BLOCK_IN_FLOW: 'inside { } and [ ] a map or a list needs brackets of its own, and a value with ": " in it quotes',
  MULTIPLE_DOCS: 'the file must hold one document; remove the --- or ...',
  BAD_ALIAS: `a value that starts with * or & means something else in YAML; ${QUOTE_HINT}`,
  BAD_DQ_ESCAPE: 'invalid escape in double quotes; use single quotes instead',
  BAD_DIRECTIVE: `directives (%) are not used here; remove it, or ${QUOTE_HINT}`,
  BAD_SCALAR_START: `a value cannot start with this character; ${QUOTE_HINT}`,
  TAG_RESOLVE_FAILED: `tags (!name) are not used here; remove it, or ${QUOTE_HINT}`,
  BAD_COLLECTION_TYPE: `tags (!name) are not used here; remove it, or ${QUOTE_HINT}`,
  UNEXPECTED_TOKEN: 'unexpected text; a comma is missing before it, or quotes round the whole value',
  RESOURCE_EXHAUSTION: 'values are nested too deeply',
}

/** Matches empty lines, comment lines, and the indentation after them. */
const BLANK = /(?:[^\S\n]*(?:#.*)?\n)*[^\S\n]*/y
/** Matches the library's message for a bracket that is never closed, or is closed only on a line with wrong indentation. */
const UNCLOSED_BRACKET = /^Flow (map|sequence)/

/** The faults in the parser's order, at most one for each line: later errors of a line mostly follow from the first. */
export function syntaxFaults(source: SourceText, document: Document): Fault[] {
  const isUnclosed = document.errors.some(({ message }) => UNCLOSED_BRACKET.test(message))
  const byLine = new Map<number, Fault>()
  for (const error of [...document.errors, ...document.warnings]) {
    if (isUnclosed && error.code === 'BLOCK_IN_FLOW') continue
    if (byLine.size > 0 && error.message.includes('in YAML stream')) continue // the document has already ended
    const fault = describe(source, document, error)
    const { line } = source.position(fault.offset)
    if (!byLine.has(line)) byLine.set(line, fault)
  }
  return [...byLine.values()]
}

function describe(source: SourceText, document: Document, { code, message, pos: [at] }: YAMLError): Fault {
  const { text } = source
  BLANK.lastIndex = at - source.position(at).column + 1
  const [blank] = BLANK.exec(text)!
  // The error may be at the indentation, or on an empty line before the wrong line: move to the line's content.
  const offset = Math.max(at, BLANK.lastIndex)
  const indent = blank.slice(blank.lastIndexOf('\n') + 1)
  if (offset === BLANK.lastIndex && indent.includes('\t')) {
    return { offset: offset - indent.length + indent.indexOf('\t'), message: TAB_MESSAGE }
  }
  if (UNCLOSED_BRACKET.test(message) || message.startsWith('Missing closing')) {
    return { offset: openingBefore(document, at), message: 'the quote or bracket that opens here is not closed' }
  }
  if (text.slice(offset - 1, offset + 2).includes('${')) {
    return { offset, message: `inside { } and [ ] a \${...} needs quotes; ${QUOTE_HINT}` }
  }
  if (message.startsWith('Sequence item')) return { offset, message: MESSAGES.BAD_INDENT! }
  return { offset, message: MESSAGES[code] ?? `not valid YAML: ${message}` }
}

/** The offset of the last quote or bracket that opens before an offset. */
function openingBefore(document: Document, before: number): number {
  let found = before
  visit(document, (_, node) => {
    if (!isNode(node) || !node.range || node.range[0] >= before) return
    const opens = isScalar(node) ? node.type?.startsWith('QUOTE') : isCollection(node) && node.flow
    if (opens) [found] = node.range
  })
  return found
}
