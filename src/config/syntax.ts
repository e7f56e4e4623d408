import { isCollection, isNode, isScalar, visit } from 'yaml'
import type { Document, Node, Scalar, YAMLParseError } from 'yaml'
import type { SourceText } from './source-text.ts'

/** Something wrong at one offset of the text. */
export interface Fault {
  readonly offset: number
  readonly message: string
  /** A variable of the environment that is not set: nothing is wrong with the file. */
  readonly isUnset?: boolean
}

const QUOTE_HINT = 'put quotes round the value'
const BLOCK_IN_FLOW_MESSAGE =
  'inside { } and [ ] a map or a list needs brackets of its own, and a value with ": " in it quotes'
const TAB_MESSAGE = 'a tab cannot indent YAML; use spaces'

/**
 * What the YAML parser found, in words that say what to change, at the place
 * where it has to be changed. One fault a line: what follows the first on a line
 * is mostly its echo.
 */
export function syntaxFaults(source: SourceText, document: Document): Fault[] {
  const byLine = new Map<number, Fault>()
  for (const error of [...withoutRepeatedErrors(document.errors), ...document.warnings]) {
    const isEcho = error.message.includes('in YAML stream') // the document had ended already
    if (isEcho && byLine.size > 0) continue
    const fault = describe(source, document, error)
    const { line } = source.position(fault.offset)
    if (!byLine.has(line)) byLine.set(line, fault)
    if (error.code === 'RESOURCE_EXHAUSTION') return [fault]
  }
  return [...byLine.values()]
}

/** A block in a flow collection, or what looks like one because that is not closed, is told several times. */
function withoutRepeatedErrors(errors: readonly YAMLParseError[]): readonly YAMLParseError[] {
  const inFlow = errors.filter(({ code }) => code === 'BLOCK_IN_FLOW')
  if (errors.some(isUnclosed)) return errors.filter(error => !inFlow.includes(error))
  const first = Math.min(...inFlow.map(({ pos: [offset] }) => offset))
  return [...errors.filter(({ pos: [offset] }) => offset < first), ...inFlow]
}

function describe(source: SourceText, document: Document, error: YAMLParseError): Fault {
  const [offset] = error.pos
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return { offset, message: TAB_MESSAGE }
    case 'BAD_INDENT':
      return tabBefore(source, offset) ?? unclosedCollection(document, error) ?? wrongIndentation(source, offset)
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
      return brokenEntry(source, offset)
    case 'BLOCK_IN_FLOW':
      return { offset, message: BLOCK_IN_FLOW_MESSAGE }
    case 'MISSING_CHAR':
      return missingCharacter(source, document, error)
    case 'MULTIPLE_DOCS':
      return secondDocument(source, offset)
    case 'UNEXPECTED_TOKEN':
      return unexpectedToken(source, offset)
    case 'BAD_SCALAR_START':
      return { offset, message: `a value cannot start with this character; ${QUOTE_HINT}` }
    case 'BAD_ALIAS':
      return { offset, message: `a value that starts with * or & means something else in YAML; ${QUOTE_HINT}` }
    case 'BAD_DQ_ESCAPE':
      return { offset, message: 'this is no escape in double quotes; use single quotes instead' }
    case 'TAG_RESOLVE_FAILED':
    case 'BAD_COLLECTION_TYPE':
      return { offset, message: `tags (!name) are not used here; remove it, or ${QUOTE_HINT}` }
    case 'RESOURCE_EXHAUSTION':
      return { offset, message: 'values are nested too deeply' }
    default:
      return { offset, message: `this is not valid YAML: ${error.message}` }
  }
}

/** @param offset of the second, or of the `---` in front of it */
function secondDocument({ text }: SourceText, offset: number): Fault {
  const start = text.lastIndexOf('\n---', offset) + 1
  const end = text.lastIndexOf('\n...', offset) + 1
  return end > start
    ? { offset: end, message: 'the document ends here, and more follows; remove the ...' }
    : { offset: start, message: 'a second document starts here; the file must hold one, so remove the ---' }
}

/** An entry that the parser could not read as `name: value`, for one of several reasons. */
function brokenEntry(source: SourceText, offset: number): Fault {
  const { line } = source.position(offset)
  const { start } = source.lineRange(line)
  const text = source.line(line)
  const dash = /^\s*-(?=[^\s-])/.exec(text)
  if (dash) return { offset: start + dash[0].length, message: 'put a space behind the dash' }
  const colon = /^[\s-]*[\w.-]+:(?=[^\s/])/.exec(text)
  if (colon) return { offset: start + colon[0].length, message: 'put a space behind the colon' }
  const below = nextContentLine(source, line)
  const tab = below !== null && /:\s*(?:#.*)?$/.test(text) ? tabBefore(source, below.offset) : null
  if (tab) return tab
  const keyColumn = /^\s*(?:- +)*/.exec(text)![0].length
  if (below !== null && below.indent > keyColumn && /:\s+\S/.test(text)) {
    const message = 'this line is indented deeper than the one above, which has a value already; line them up'
    return { offset: below.offset, message }
  }
  if (/^\s*-\s/.test(text)) {
    const message = 'a list item cannot stand here; put it below a key without a value, indented'
    return { offset: start + indentOf(text), message }
  }
  if (/:\s.*:\s/.test(text)) return { offset, message: `a value with ": " in it needs quotes; ${QUOTE_HINT}` }
  return { offset: start + indentOf(text), message: 'this line is not of the form "name: value"' }
}

function missingCharacter(source: SourceText, document: Document, error: YAMLParseError): Fault {
  const [offset] = error.pos
  if (error.message.startsWith('Missing closing')) {
    const quoted = lastNode(document, offset, node => isScalar(node) && isQuoted(node))
    return { offset: quoted?.range?.[0] ?? offset, message: 'the quote that opens here is not closed' }
  }
  if (error.message.startsWith('Sequence item')) {
    return wrongIndentation(source, offset)
  }
  if (error.message.startsWith('Implicit map keys')) return brokenEntry(source, offset)
  if (error.message.startsWith('Missing ,')) {
    return { offset, message: 'a comma is missing before this, or quotes round the value' }
  }
  if (error.message.startsWith('Missing space after :')) {
    return { offset, message: 'put a space behind the colon' }
  }
  return { offset, message: `this is not valid YAML: ${error.message}` }
}

function unexpectedToken(source: SourceText, offset: number): Fault {
  const { text } = source
  const reference = text.slice(offset - 1, offset + 1) === '${' || text.slice(offset, offset + 2) === '${'
  if (reference) return { offset, message: `inside { } and [ ] a \${...} needs quotes; ${QUOTE_HINT}` }
  const { line, column } = source.position(offset)
  const before = source.line(line).slice(0, column - 1)
  if (before.trim() === '') return wrongIndentation(source, offset)
  return { offset, message: 'the value has ended before this; a comma is missing, or quotes round the whole' }
}

function isQuoted(node: Scalar): boolean {
  return node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE'
}

const UNCLOSED_COLLECTION = /^Flow (map|sequence)/

function isUnclosed({ message }: YAMLParseError): boolean {
  return UNCLOSED_COLLECTION.test(message)
}

function unclosedCollection(document: Document, error: YAMLParseError): Fault | null {
  const kind = UNCLOSED_COLLECTION.exec(error.message)?.[1]
  if (kind === undefined) return null
  const [offset] = error.pos
  const opened = lastNode(document, offset, node => isCollection(node) && node.flow === true)
  const [open, close] = kind === 'map' ? ['{', '}'] : ['[', ']']
  const message = `the ${open} that opens here is not closed; put a ${close} behind its last entry`
  return { offset: opened?.range?.[0] ?? offset, message }
}

/** The last node of a kind that starts before the offset. */
function lastNode(document: Document, before: number, matches: (node: Node) => boolean): Node | null {
  let found: Node | null = null
  visit(document, (_, node) => {
    if (isNode(node) && node.range && node.range[0] < before && matches(node)) found = node
  })
  return found
}

function nextContentLine(source: SourceText, line: number): { offset: number, indent: number } | null {
  for (let below = line + 1; below <= source.lines; below++) {
    const text = source.line(below)
    if (text.trim() === '' || text.trimStart().startsWith('#')) continue
    const indent = indentOf(text)
    return { offset: source.lineRange(below).start + indent, indent }
  }
  return null
}

/** The line of the offset, or the next that says something, begins at a wrong column. */
function wrongIndentation(source: SourceText, offset: number): Fault {
  const start = nextContentLine(source, source.position(offset).line - 1)?.offset ?? offset
  const message = 'the indent fits none of the lines above; line this up with its neighbours'
  return tabBefore(source, start) ?? { offset: start, message }
}

/** The first tab that stands before the offset in its line, where there is nothing else but spaces. */
function tabBefore(source: SourceText, offset: number): Fault | null {
  const { start } = source.lineRange(source.position(offset).line)
  const indent = source.text.slice(start, offset)
  return indent.trim() === '' && indent.includes('\t')
    ? { offset: start + indent.indexOf('\t'), message: TAB_MESSAGE }
    : null
}

function indentOf(text: string): number {
  return text.length - text.trimStart().length
}
