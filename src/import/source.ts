import { LineCounter, isAlias, isMap, isNode, isScalar, isSeq, parseDocument, visit, type Alias, type Document, type Node } from 'yaml'

export type Path = readonly (string | number)[]

/** A file that cannot be imported; the message has the reason, and the place if known. */
export class ImportError extends Error {
  override readonly name = 'ImportError'
}

/** Enough for an alias in each model; aliases of aliases can multiply beyond it. */
const MAX_ALIASES = 100_000
const TOO_DEEP = 'values are nested too deeply'

/** A YAML file of another program. Settings are taken one by one, so that the rest is known at the end. */
export class Source {
  readonly #document: Document
  readonly #lines = new LineCounter()
  /** Plain data, in which aliases and merge keys are replaced by their content. */
  readonly #settings: unknown
  /** What each alias stands for. */
  readonly #aliased: ReadonlyMap<Alias, Node | undefined>
  readonly #taken = new Set<string>()
  /** Values of which a part was taken. */
  readonly #partlyTaken = new Set<string>()

  /** @throws ImportError for text that is no YAML mapping */
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

  /** Takes the whole value at a path; undefined = there is none. */
  take(path: Path): unknown {
    this.#taken.add(pathKey(path))
    for (let length = 0; length < path.length; length++) this.#partlyTaken.add(pathKey(path.slice(0, length)))
    return this.peek(path)
  }

  /** The same without taking it. */
  peek(path: Path): unknown {
    return path.reduce<unknown>((value, step) => (
      isContainer(value) && Object.hasOwn(value, step) ? value[step] : undefined
    ), this.#settings)
  }

  /** Takes a text that is not empty; null = there is none, and nothing is taken. */
  text(path: Path): string | null {
    const value = this.peek(path)
    if (typeof value !== 'string' || value === '') return null
    this.take(path)
    return value
  }

  /** Takes a number, also in quotes; null = there is none, and nothing is taken. */
  number(path: Path): number | null {
    const value = this.peek(path)
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number !== 'number' || !Number.isFinite(number)) return null
    this.take(path)
    return number
  }

  /** How many entries the list at a path has; 0 where there is no list. */
  length(path: Path): number {
    const found = this.peek(path)
    return Array.isArray(found) ? found.length : 0
  }

  /** `line:column` of the value at a path, where it was written, both from 1; `1:1` where there is none. */
  place(path: Path): string {
    const node = path.reduce<unknown>((holder, step) => this.#childNode(holder, step), this.#document.contents)
    const { line, col } = this.#lines.linePos(isNode(node) ? node.range?.[0] ?? 0 : 0)
    return `${line}:${col}`
  }

  /** The outermost settings of which nothing was taken, in the file's order. */
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

  /** The child of a node by name or index, including merge keys. */
  #childNode(holder: unknown, step: string | number): unknown {
    const node = this.#resolveAlias(holder)
    if (!isMap(node)) return isSeq(node) ? node.get(step, true) : undefined
    const own = node.get(step, true)
    if (own !== undefined) return own
    // The parser represents << as a symbol.
    const merge = node.items.find(pair => isScalar(pair.key) && typeof pair.key.value === 'symbol')
    const merged = this.#resolveAlias(merge?.value)
    const sources = isSeq(merged) ? merged.items : [merged]
    return sources.filter(isNode).map(source => this.#childNode(source, step)).find(found => found !== undefined)
  }

  /** The node that an alias stands for. */
  #resolveAlias(node: unknown): unknown {
    return isAlias(node) ? this.#aliased.get(node) : node
  }
}

/** The parser is recursive, so deep nesting throws a RangeError. */
function withImportErrors<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new ImportError(error instanceof RangeError ? TOO_DEEP : (error as Error).message)
  }
}

/** Resolves all aliases in one pass: the parser's own method scans the document for each. An anchor can be redefined. */
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

/** `model_list[0].litellm_params.model` */
export function formatPath(path: Path): string {
  const parts = path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`))
  return parts.join('').replace(/^\./, '')
}

function pathKey(path: Path): string {
  return path.join('\0')
}
