import type { Located, Path } from './document.ts'
import type { Range, SourceText } from './source-text.ts'

/** Names that hold a credential wherever they stand, mistyped ones included. */
const SECRET_NAME = /(^|[_-])(api_?key|key|token|secret|pass(word|wd)?|bearer|authorization|credentials?)$/i
/** The same names as they stand in a line that could not be parsed. */
const SECRET_LINE =
  /(?:key|token|secret|pass(?:word|wd)?|bearer|value|authorization|credentials?)["']?[ \t]*:[ \t]*/gi
const URL_CREDENTIALS = /(?<=:\/\/)[^/\s"']*(?=@)/g

/**
 * The stretches of the text that may hold a secret, in order and apart, so that
 * no message shows one. Where secrets are at home every value counts as one
 * unless its key is known to be harmless.
 * @param broken the text is not YAML: lines are then judged by their looks too
 */
export function secretRanges(source: SourceText, root: Located, broken: boolean): Range[] {
  const ranges: Range[] = matches(source.text, URL_CREDENTIALS)
  collect(root, [], ranges)
  if (broken) ranges.push(...restsOfLines(source))
  return apart(ranges)
}

function collect(located: Located, path: Path, into: Range[]): void {
  const isScalar = located.text !== null || located.faulty
  if (isScalar && isSecret(path)) into.push(located.at)
  // A colon left out makes a key of `bearer SECRET`.
  if (located.key && /\s/.test(String(path.at(-1))) && isSecret(path)) into.push(located.key)
  for (const [name, child] of located.children) collect(child, [...path, name], into)
}

function isSecret(path: Path): boolean {
  const [top, , section, name] = path
  if (path.join('.') === 'server.tls.key') return false
  if (top === 'keys') return !['name', 'models', 'limits', 'sha256'].includes(String(section))
  if (top === 'upstreams' && section === 'auth') return name !== 'header'
  if (top === 'upstreams' && section === 'headers') return true
  if (top === 'console' && path[1] === 'users') return !['name', 'role'].includes(String(name))
  return SECRET_NAME.test(String(path.at(-1)))
}

function restsOfLines(source: SourceText): Range[] {
  const ranges: Range[] = []
  for (const { end: start } of matches(source.text, SECRET_LINE)) {
    const { end } = source.lineRange(source.position(start).line)
    if (start < end) ranges.push({ start, end })
  }
  return ranges
}

function matches(text: string, pattern: RegExp): Range[] {
  return [...text.matchAll(pattern)].map(({ 0: { length }, index: start }) => ({ start, end: start + length }))
}

function apart(ranges: Range[]): Range[] {
  const sorted = ranges.filter(({ start, end }) => start < end).sort((a, b) => a.start - b.start)
  const result: Range[] = []
  for (const range of sorted) {
    const last = result.at(-1)
    if (!last || range.start >= last.end) result.push(range)
    else result[result.length - 1] = { start: last.start, end: Math.max(last.end, range.end) }
  }
  return result
}
