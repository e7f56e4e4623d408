import { LineCounter, isAlias, isMap, isNode, isScalar, isSeq, parseDocument, visit, type Alias, type Document, type Node } from 'yaml'

export type Path = readonly (string | number)[]

/** A file cannot be imported. The message has the reason, and the position if it is known. */
export class ImportError extends Error {
  override readonly name = 'ImportError'
}

/** Maximum number of aliases, enough for an alias in each model. Aliases of aliases can multiply to more. */
const MAX_ALIASES = 100_000
const TOO_DEEP = 'values are nested too deeply'

/** A YAML file of another program. Callers take settings one by one. At the end, the settings that nobody took are known. */
export class Source {
  readonly #document: Document
  readonly #lines = new LineCounter()
  /** The settings as plain data. Aliases and merge keys are replaced by their content. */
  readonly #settings: unknown
  /** The node that each alias refers to. */
  readonly #aliased: ReadonlyMap<Alias, Node | undefined>
  readonly #taken = new Set<string>()
  /** Values of which only a part was taken. */
  readonly #partlyTaken = new Set<string>()

  /** @throws ImportError if the text is not a YAML mapping */
  constructor(text: string) {
    this.#document = withImportErrors(() => parseDocument(text, { lineCounter: this.#lines, merge: true }))
    const [fault] = this.#document.errors
    if (fault) {
      const { line, col } = this.#lines.linePos(fault.pos[0])
      const message = fault.code === 'RESOURCE_EXHAUSTION' ? TOO_DEEP : fault.message.split(' at line')[0]
      throw new ImportError(`${line}:${col}: ${message}`)
    }
    if (!isMap(this.#document.contents)) throw new ImportError('it is not a mapping of settings')
    this.#settings = withImportErrors(() => this.#document.toJS({ maxAliasCount: MAX_ALIASES }))
    this.#aliased = withImportErrors(() => aliasesOf(this.#document))
  }

  /** Takes the whole value at a path; undefined = there is no value. */
  take(path: Path): unknown {
    this.#taken.add(pathKey(path))
    for (let length = 0; length < path.length; length++) this.#partlyTaken.add(pathKey(path.slice(0, length)))
    return this.peek(path)
  }

  /** Reads the value at a path without taking it. */
  peek(path: Path): unknown {
    return path.reduce<unknown>((value, step) => (
      isContainer(value) && Object.hasOwn(value, step) ? value[step] : undefined
    ), this.#settings)
  }

  /** Takes a text that is not empty; null = there is no such text, and nothing is taken. */
  text(path: Path): string | null {
    const value = this.peek(path)
    if (typeof value !== 'string' || value === '') return null
    this.take(path)
    return value
  }

  /** Takes a number, which may be in quotes; null = there is no number, and nothing is taken. */
  number(path: Path): number | null {
    const value = this.peek(path)
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number !== 'number' || !Number.isFinite(number)) return null
    this.take(path)
    return number
  }

  /** Number of elements of the list at a path; 0 = there is no list. */
  length(path: Path): number {
    const found = this.peek(path)
    return Array.isArray(found) ? found.length : 0
  }

  /** The position `line:column` at which the value of a path is written, from 1; `1:1` = there is no value. */
  place(path: Path): string {
    const node = path.reduce<unknown>((holder, step) => this.#childNode(holder, step), this.#document.contents)
    const { line, col } = this.#lines.linePos(isNode(node) ? node.range?.[0] ?? 0 : 0)
    return `${line}:${col}`
  }

  /** The outermost settings of which nothing was taken, in the order of the file. */
  unusedSettings(): Path[] {
    return this.#unusedIn(this.#settings, [])
  }

  #unusedIn(value: unknown, path: Path): Path[] {
    if (this.#taken.has(pathKey(path))) return []
    if (path.length > 0 && !this.#partlyTaken.has(pathKey(path))) return [path]
    if (Array.isArray(value)) return value.flatMap((each, index) => this.#unusedIn(each, [...path, index]))
    if (!isContainer(value)) return []
    return Object.entries(value).flatMap(([name, each]) => this.#unusedIn(each, [...path, name]))
  }

  /** The child of a node by its name or index. Includes children from merge keys. */
  #childNode(holder: unknown, step: string | number): unknown {
    const node = this.#resolveAlias(holder)
    if (!isMap(node)) return isSeq(node) ? node.get(step, true) : undefined
    const own = node.get(step, true)
    if (own !== undefined) return own
    // The parser represents the key << as a symbol.
    const merge = node.items.find(pair => isScalar(pair.key) && typeof pair.key.value === 'symbol')
    const merged = this.#resolveAlias(merge?.value)
    const sources = isSeq(merged) ? merged.items : [merged]
    return sources.filter(isNode).map(source => this.#childNode(source, step)).find(found => found !== undefined)
  }

  /** The node that an alias refers to; any other node is returned unchanged. */
  #resolveAlias(node: unknown): unknown {
    return isAlias(node) ? this.#aliased.get(node) : node
  }
}

/** Converts the RangeError of the recursive parser, which deep nesting causes, to an ImportError. */
function withImportErrors<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new ImportError(error instanceof RangeError ? TOO_DEEP : (error as Error).message)
  }
}

/** Resolves all aliases in one pass, because the parser's own method scans the document for each alias. An anchor can be redefined. */
function aliasesOf(document: Document): Map<Alias, Node | undefined> {
  const anchored = new Map<string, Node>()
  const aliased = new Map<Alias, Node | undefined>()
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node)) aliased.set(node, anchored.get(node.source))
      else if (node.anchor !== undefined) anchored.set(node.anchor, node)
    },
  })
  return aliased
}

function isContainer(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null
}

/** Formats a path: `model_list[0].litellm_params.model`. */
export function formatPath(path: Path): string {
  const parts = path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`))
  return parts.join('').replace(/^\./, '')
}

function pathKey(path: Path): string {
  return path.join('\0')
}
