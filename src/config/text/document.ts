import { isAlias, isMap, isScalar, parseDocument } from 'yaml'
import type { Alias, Document, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml'
import { expandReferences, type Environment } from './references.ts'
import type { Range, SourceText } from './source-text.ts'
import { syntaxFaults, type Fault } from './syntax.ts'

/** One value of the file, with its position. */
export interface Located {
  /** Position of the key; null = the value is a list item, or the root. */
  readonly key: Range | null
  readonly at: Range
  /** For an alias, the position at which its value is written; null for other values. */
  readonly origin: Range | null
  /** The value, with references to the environment expanded. Maps are objects without a prototype. */
  readonly value: unknown
  /** The text of a scalar, with references expanded: `0.40` if the value is 0.4. null for maps and lists. */
  readonly text: string | null
  /** true if the value contains a reference, so that the file does not determine its type. */
  readonly referenced: boolean
  /** true if a reference in the value used its default. */
  readonly defaulted: boolean
  /** true if a fault in the value has been reported: no further faults of the value are reported. */
  readonly faulty: boolean
  /** The values inside, by key or by index. */
  readonly children: ReadonlyMap<string, Located>
  /** Entries that have no effect, such as a second value of a key. They are reported. */
  readonly ignored: readonly Entry[]
  /** Number of values in this value, including the value itself. An alias counts each time it is used. */
  readonly size: number
}

type Entry = readonly [name: string, value: Located]

export interface ParsedYaml {
  readonly root: Located
  readonly faults: readonly Fault[]
  /** true if the text is not YAML, so that values and positions are guesses. */
  readonly isInvalid: boolean
}

/** Maximum number of values. Ten thousand keys have a hundred thousand values; only aliases of aliases reach the limit. */
const MAX_VALUES = 500_000
const MAX_DEPTH = 64

const NO_CHILDREN: ReadonlyMap<string, Located> = new Map()

/**
 * Reads YAML 1.2 with merge keys, and the position of each key and value. Expands references to the environment. A value from an alias or a
 * merge key has the position at which the value is written.
 */
export function parseYaml(source: SourceText, env: Environment): ParsedYaml {
  const document = parse(source.text)
  if (document === null) {
    const fault = { offset: 0, message: 'values are nested too deeply, or thousands of lines have a wrong indentation' }
    return { root: scalarAt({ start: 0, end: 0 }, null), faults: [fault], isInvalid: true }
  }
  const faults = syntaxFaults(source, document)
  const reader = new Reader(source, env)
  const root = reader.read(document.contents as YamlNode, null)
  return faults.length > 0 ? { root, faults, isInvalid: true } : { root, faults: reader.faults, isInvalid: false }
}

/** Parses the text; null = the nesting is too deep for the parser's stack. */
function parse(text: string): Document.Parsed | null {
  try {
    return parseDocument(text, {
      prettyErrors: false,
      uniqueKeys: false, // this file checks duplicates, because the library's check is quadratic and does not report the first position
      schema: 'core', // ignores the schema that a %YAML line names
    })
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

type YamlNode = Alias | Scalar | YAMLMap | YAMLSeq | null

class Reader {
  readonly faults: Fault[] = []
  readonly #source: SourceText
  readonly #env: Environment
  /** Values by anchor; null = the node with the anchor is still being read. */
  readonly #anchors = new Map<string, Located | null>()
  #size = 0
  #isTooLarge = false
  #depth = 0

  constructor(source: SourceText, env: Environment) {
    this.#source = source
    this.#env = env
  }

  read(node: YamlNode, key: Range | null): Located {
    if (node === null) return { ...scalarAt(key ?? { start: 0, end: 0 }, key), value: null, text: '' }
    if (isAlias(node)) return this.#alias(node, key)
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, null)
    const located = this.#value(node, key)
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, located)
    return located
  }

  #value(node: Scalar | YAMLMap | YAMLSeq, key: Range | null): Located {
    this.#size++
    if (isScalar(node)) return this.#scalar(node, key)
    const at = rangeOf(node)
    if (this.#depth === MAX_DEPTH) return this.#fault('values are nested too deeply', at, key)
    this.#depth++
    const strays: Entry[] = []
    const children = isMap(node) ? this.#mapChildren(node, strays) : this.#listChildren(node as YAMLSeq)
    this.#depth--
    const items = [...children.values()]
    const value = isMap(node) ? toObject(children) : items.map(item => item.value)
    const size = items.reduce((sum, item) => sum + item.size, 1)
    return { ...scalarAt(at, key), value, children, ignored: strays, size }
  }

  #scalar(node: Scalar, key: Range | null): Located {
    const at = rangeOf(node)
    const { value } = node
    if (typeof value === 'string') return this.#string(value, at, key)
    if (value === null || typeof value === 'number' || typeof value === 'boolean') {
      const isNothing = value === null && node.source === '' // then only the key has a position
      return { ...scalarAt(isNothing && key ? key : at, key), value, text: node.source ?? String(value) }
    }
    return this.#fault('this is neither text nor a number, true or false', at, key)
  }

  #string(value: string, at: Range, key: Range | null): Located {
    if (!value.includes('${')) return { ...scalarAt(at, key), value, text: value }
    const { text, referenced, defaulted, faults } = expandReferences(value, this.#env)
    let from = at.start
    for (const { raw, message, isUnset } of faults) {
      // If the reference is not found, the source writes it with escapes or folded lines. Then use the start of the value.
      const found = this.#source.text.indexOf(raw, from)
      const inside = found !== -1 && found < at.end
      this.faults.push({ offset: inside ? found : at.start, message, isUnset })
      if (inside) from = found + raw.length
    }
    return { ...scalarAt(at, key), value: text, text, referenced, defaulted, faulty: faults.length > 0 }
  }

  #listChildren(node: YAMLSeq): Map<string, Located> {
    return new Map(node.items.map((item, index) => [String(index), this.read(item as YamlNode, null)]))
  }

  #mapChildren(node: YAMLMap, strays: Entry[]): Map<string, Located> {
    const own = new Map<string, Located>()
    const merged: Located[] = []
    for (const pair of node.items as Pair<YamlNode, YamlNode>[]) {
      if (isScalar(pair.key) && pair.key.type === 'PLAIN' && pair.key.source === '<<') {
        merged.push(...this.#mergeSources(this.read(pair.value, rangeOf(pair.key)), strays))
      } else {
        this.#entry(pair, own, strays)
      }
    }
    // The map's own entries override merged entries; the first source overrides later sources.
    for (const source of merged) {
      for (const [name, child] of source.children) {
        if (own.has(name)) strays.push([name, child])
        else own.set(name, child)
      }
    }
    return own
  }

  #entry(pair: Pair<YamlNode, YamlNode>, into: Map<string, Located>, strays: Entry[]): void {
    const name = this.read(pair.key, null)
    const value = this.read(pair.value, name.at)
    const first = into.get(name.text ?? '')
    const isName = name.text !== null && name.text !== '' && !name.faulty
    if (isName && first === undefined) return void into.set(name.text, value)
    strays.push([name.text ?? '', value], ['', name])
    if (name.faulty) return
    const line = first?.key && this.#source.position(first.key.start).line
    const again = `this key stands here a second time; the first is on line ${line}`
    this.#report(name.at.start, first === undefined ? 'a key must be a name' : again)
  }

  #mergeSources(located: Located, strays: Entry[]): Located[] {
    const sources = Array.isArray(located.value) ? [...located.children.values()] : [located]
    return sources.filter(source => {
      const { value, faulty, at } = source
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
      if (!isObject) strays.push(['<<', source])
      if (!isObject && !faulty) this.#report(at.start, '<< takes a map, or a list of maps')
      return isObject
    })
  }

  #alias(node: Alias, key: Range | null): Located {
    const at = rangeOf(node)
    const target = this.#anchors.get(node.source)
    if (target === null) return this.#fault('this refers to the value that it is a part of', at, key)
    if (target === undefined) return this.#fault('no anchor of this name stands above; a value that starts with * needs quotes', at, key)
    this.#size += target.size
    if (this.#size <= MAX_VALUES) return { ...target, at, key, origin: target.origin ?? target.at }
    if (!this.#isTooLarge) this.#report(at.start, 'aliases multiply the values beyond reason')
    this.#isTooLarge = true
    return { ...scalarAt(at, key), faulty: true }
  }

  #report(offset: number, message: string): void {
    this.faults.push({ offset, message })
  }

  #fault(message: string, at: Range, key: Range | null): Located {
    this.#report(at.start, message)
    return { ...scalarAt(at, key), faulty: true }
  }
}

function scalarAt(at: Range, key: Range | null): Located {
  const plain = { referenced: false, defaulted: false, faulty: false }
  return { key, at, origin: null, value: null, text: null, ...plain, children: NO_CHILDREN, ignored: [], size: 1 }
}

function rangeOf(node: Alias | Scalar | YAMLMap | YAMLSeq): Range {
  const [start, end] = node.range ?? [0, 0]
  return { start, end }
}

/** Creates an object without a prototype, so that `__proto__` is an ordinary key. */
function toObject(children: ReadonlyMap<string, Located>): Record<string, unknown> {
  const object = Object.create(null) as Record<string, unknown>
  for (const [name, child] of children) object[name] = child.value
  return object
}

export type Path = readonly (string | number)[]

/** Finds the value at a path; undefined = the file has no such value. */
export function locate(root: Located, path: Path): Located | undefined {
  let located: Located | undefined = root
  for (const step of path) located = located?.children.get(String(step))
  return located
}
