/** Writes values as source code. All text is quoted and escaped. */

type Json = unknown

const WIDTH = 84

interface Grammar {
  readonly none: string
  readonly true: string
  readonly false: string
  /** Space inside the braces of an object. Python has no such space. */
  readonly pad: string
  member(name: string): string
}

const JAVASCRIPT: Grammar = {
  none: 'null', true: 'true', false: 'false', pad: ' ',
  // Written with brackets, because a plain __proto__ member would set the prototype.
  member: name => `${name === '__proto__' ? '["__proto__"]'
    : /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name)}: `,
}

const PYTHON: Grammar = {
  none: 'None', true: 'True', false: 'False', pad: '', member: name => `${quoted(name)}: `,
}

/** @param indent - number of columns by which the line is indented */
export function javascript(value: Json, indent = 0): string {
  return literal(value, indent, JAVASCRIPT)
}

/** @param indent - number of columns by which the line is indented */
export function python(value: Json, indent = 0): string {
  return literal(value, indent, PYTHON)
}

/** Writes arguments: `model="x", stream=True`. If they are long, each is in its own line. Undefined arguments are left out. */
export function pythonArguments(values: Readonly<Record<string, Json>>, indent = 0): string {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined)
  const short = entries.map(([name, value]) => `${name}=${flat(value, PYTHON)}`).join(', ')
  if (short.length + indent <= WIDTH) return short
  const inner = indent + 4
  const lines = entries.map(([name, value]) => `${' '.repeat(inner)}${name}=${python(value, inner)},\n`)
  return `\n${lines.join('')}${' '.repeat(indent)}`
}

/** Quotes a text as one word of a POSIX shell. */
export function shell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Source code that is inserted unchanged, such as a call or a variable. */
export class Code {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

function literal(value: Json, indent: number, grammar: Grammar): string {
  const short = flat(value, grammar)
  if (short.length + indent <= WIDTH || typeof value !== 'object' || value === null
    || value instanceof Code) return short
  const step = grammar === PYTHON ? 4 : 2
  const inner = indent + step
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  const items = Array.isArray(value)
    ? value.map(item => literal(item, inner, grammar))
    : members(value).map(([name, item]) => `${grammar.member(name)}${literal(item, inner, grammar)}`)
  const lines = items.map(item => `${' '.repeat(inner)}${item},\n`)
  return `${open}\n${lines.join('')}${' '.repeat(indent)}${close}`
}

function flat(value: Json, grammar: Grammar): string {
  if (value instanceof Code) return value.text
  if (value === null) return grammar.none
  if (typeof value === 'boolean') return value ? grammar.true : grammar.false
  if (typeof value === 'string') return quoted(value)
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return `[${value.map(item => flat(item, grammar)).join(', ')}]`
  const inside =
    members(value).map(([name, item]) => `${grammar.member(name)}${flat(item, grammar)}`).join(', ')
  return inside === '' ? '{}' : `{${grammar.pad}${inside}${grammar.pad}}`
}

function members(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, item]) => item !== undefined)
}

/** Quotes a text. A string in JSON is also valid in JavaScript and Python. */
function quoted(text: string): string {
  return JSON.stringify(text)
}
